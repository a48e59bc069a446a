"""What a phone makes of the site: Lighthouse loads its pages from this machine, and judges them."""
