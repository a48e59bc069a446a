// A tiny GPT in plain JavaScript: it computes what helpers/gpt.py computes, one letter after the
// other, and keeps the keys and values of the letters that it has read (a KV cache).
//
// Names and shapes are those of the Python code: T letters, C channels, V letters in the vocabulary.
// A vector is a Float32Array. So is a matrix (out, in): its rows, one after the other.
"use strict";

// The 16 bits of a float16 -> its number: 1 bit for the sign, 5 for the exponent, 10 for the rest.
const POWERS = Array.from({ length: 31 }, (_, exponent) => 2 ** ((exponent || 1) - 15) / 1024);
function fromHalf(bits) {
  const exponent = (bits >> 10) & 31;
  const size = ((bits & 1023) + (exponent ? 1024 : 0)) * POWERS[exponent];
  return bits & 0x8000 ? -size : size;
}

// {shapes: {name: [out, in]}, weights: float16 numbers in base64} -> {name: Float32Array}
function unpackParameters({ shapes, weights }) {
  const bytes = atob(weights), parameters = {}; // two letters a number, the smaller part first
  let start = 0;
  for (const [name, shape] of Object.entries(shapes)) {
    const values = new Float32Array(shape.reduce((a, b) => a * b));
    for (let i = 0; i < values.length; i++, start += 2) {
      values[i] = fromHalf(bytes.charCodeAt(start) + 256 * bytes.charCodeAt(start + 1));
    }
    parameters[name] = values;
  }
  return parameters;
}

// x (in), weight (out, in), bias (out) or none -> (out)
function linear(x, weight, bias) {
  const n = x.length, out = new Float32Array(weight.length / n);
  for (let i = 0, w = 0; i < out.length; i++) {
    let sum = bias ? bias[i] : 0;
    for (let j = 0; j < n; j++) sum += weight[w++] * x[j];
    out[i] = sum;
  }
  return out;
}

// x (C) -> (C): mean 0 and variance 1, then scale and shift
function layerNorm(x, scale, shift) {
  let mean = 0, variance = 0;
  for (const value of x) mean += value / x.length;
  for (const value of x) variance += (value - mean) ** 2 / x.length;
  return x.map((value, i) => (value - mean) / Math.sqrt(variance + 1e-5) * scale[i] + shift[i]);
}

// Scores, or logits -> positive numbers that sum to 1. -Infinity becomes 0.
function softmax(scores) {
  const largest = scores.reduce((a, b) => Math.max(a, b));
  const powers = scores.map(score => Math.exp(score - largest));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map(power => power / sum);
}

// Turn the channels 2i and 2i + 1 of each head of x (C) by the angle position · 10000^(-2i / d).
function rotate(x, position, d) {
  for (let c = 0; c < x.length; c += 2) {
    const angle = position * 10000 ** (-(c % d) / d);
    const cos = Math.cos(angle), sin = Math.sin(angle), a = x[c], b = x[c + 1];
    x[c] = a * cos - b * sin;
    x[c + 1] = a * sin + b * cos;
  }
}

function add(x, y) {
  return x.map((value, i) => value + y[i]);
}

class TinyGPT {
  // config: {vocab_size, context_length, C, n_head, n_layer}; shapes and weights as above
  constructor({ config, shapes, weights }) {
    this.config = config;
    this.parameters = unpackParameters({ shapes, weights });
    this.ids = []; // the letters that have been read, T of them
    // For each layer what its attention keeps of them: keys and values (T, C) as T vectors, and
    // the attention weights of each letter, which is a query, (T, n_head, up to T).
    this.cache = Array.from({ length: config.n_layer }, () => ({ keys: [], values: [], weights: [] }));
  }

  // (T,) ids of letters, T from 1 to context_length -> (V,) logits of the letter after the last.
  // What the letters have in common with those of the last call is not computed again.
  read(ids) {
    let same = 0;
    while (same < ids.length - 1 && ids[same] === this.ids[same]) same++;
    this.ids.length = same;
    for (const { keys, values, weights } of this.cache) {
      keys.length = values.length = weights.length = same;
    }
    let x;
    for (const id of ids.slice(same)) x = this.readOne(id);
    const p = this.parameters;
    return linear(layerNorm(x, p["norm.weight"], p["norm.bias"]),
                  p["to_logits.weight"], p["to_logits.bias"]);
  }

  // The id of the next letter -> (C,), what the last block makes of it
  readOne(id) {
    const C = this.config.C, p = this.parameters;
    let x = p["embedding.weight"].slice(id * C, (id + 1) * C);
    for (let layer = 0; layer < this.config.n_layer; layer++) {
      const block = `blocks.${layer}.`;
      const norm = (x, name) => layerNorm(x, p[`${block}${name}.weight`], p[`${block}${name}.bias`]);
      x = add(x, this.attend(norm(x, "norm_1"), layer));
      x = add(x, this.feedForward(norm(x, "norm_2"), layer));
    }
    this.ids.push(id);
    return x;
  }

  // Causal multi-head attention of one letter to itself and all letters before it: (C,) -> (C,).
  // No mask is needed, because the later letters have not been read.
  attend(x, layer) {
    const { C, n_head } = this.config, p = this.parameters, d = C / n_head;
    const part = name => p[`blocks.${layer}.attention.${name}`];
    const { keys, values, weights } = this.cache[layer];
    const position = keys.length;
    const q = linear(x, part("query.weight")), k = linear(x, part("key.weight"));
    rotate(q, position, d);
    rotate(k, position, d);
    keys.push(k);
    values.push(linear(x, part("value.weight")));
    const out = new Float32Array(C), ofHeads = [];
    for (let start = 0; start < C; start += d) { // each head has its own d channels
      const scores = Float32Array.from(keys, key => {
        let sum = 0;
        for (let c = start; c < start + d; c++) sum += q[c] * key[c];
        return sum / Math.sqrt(d);
      });
      const ofHead = softmax(scores); // (position + 1,)
      values.forEach((value, t) => {
        for (let c = start; c < start + d; c++) out[c] += ofHead[t] * value[c];
      });
      ofHeads.push(ofHead);
    }
    weights.push(ofHeads);
    return linear(out, part("proj.weight"), part("proj.bias"));
  }

  // Two Linear layers with a ReLU between them: (C,) -> (4 C,) -> (C,)
  feedForward(x, layer) {
    const part = name => this.parameters[`blocks.${layer}.feed_forward.${name}`];
    const wide = linear(x, part("wide.weight"), part("wide.bias"));
    return linear(wide.map(value => Math.max(0, value)), part("proj.weight"), part("proj.bias"));
  }
}

// (V,) logits -> (V,) probabilities that a letter is drawn with. The logits are divided by the
// temperature; only the top_k largest count. Of equal ones at the edge, the first are kept.
function nextLetterProbabilities(logits, temperature, top_k) {
  const order = [...logits.keys()].sort((a, b) => logits[b] - logits[a] || a - b);
  const scaled = logits.map(logit => logit / temperature);
  for (const id of order.slice(top_k)) scaled[id] = -Infinity;
  return softmax(scaled);
}

// (V,) probabilities and a random number from 0 to 1 -> the id of the letter that it falls on
function draw(probabilities, random) {
  let last = 0;
  for (const [id, probability] of probabilities.entries()) {
    if (!probability) continue;
    last = id; // should rounding leave a rest
    random -= probability;
    if (random < 0) break;
  }
  return last;
}
