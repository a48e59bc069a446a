"""How JupyterLab's server talks with the browser when ``make lab`` starts it."""

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection


class PromptConnection(ZMQChannelsWebsocketConnection):
    """The server's usual connection, with small messages sent at once.

    TCP holds a small message back until the browser has confirmed the one before, up to 40 ms
    (Nagle's algorithm and delayed receipts): a live picture would lag behind its slider.
    """

    def connect(self):
        """Open the way between a kernel and the browser."""
        self.websocket_handler.set_nodelay(True)
        return super().connect()
