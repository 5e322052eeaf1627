// glove100.js PACKAGE.json DIRECTORY: writes base.fbin, words.txt, queries.fbin and query_words.txt.
//
// The package holds {words: [...], vectors: {word: [100 numbers, norm, index]}}, most frequent word first. Its 341,479
// vectors are all used: none is zero, no two are equal, every word has one. 2,000 rows drawn by a fixed seed become the
// queries and are left out of the base, whose rows keep their order.
'use strict';
const fs = require('fs');
const path = require('path');

const DIM = 100, QUERIES = 2000, SEED = 20240100n;
const MASK = (1n << 64n) - 1n;

// SplitMix64 over a counter, as base/random.h.
function randomAt(counter) {
  let z = (SEED + (counter + 1n) * 0x9e3779b97f4a7c15n) & MASK;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return z ^ (z >> 31n);
}

// The rows held out, ascending.
function chooseQueries(n) {
  const chosen = new Set();
  for (let counter = 0n; chosen.size < QUERIES; counter++) chosen.add(Number(randomAt(counter) % BigInt(n)));
  return [...chosen].sort((a, b) => a - b);
}

function checkedVector(data, word) {
  const vector = Object.prototype.hasOwnProperty.call(data.vectors, word) ? data.vectors[word] : undefined;
  if (!Array.isArray(vector) || vector.length < DIM) throw new Error(`"${word}" has no vector of ${DIM} numbers`);
  const values = vector.slice(0, DIM);
  if (!values.every(Number.isFinite)) throw new Error(`the vector of "${word}" holds something not a number`);
  if (values.every((value) => value === 0)) throw new Error(`the vector of "${word}" is zero`);
  return values;
}

// .fbin: row count and dimension as u32, then the rows as float32, all little-endian.
function writeSet(directory, vectorsName, wordsName, data, words) {
  const bytes = new DataView(new ArrayBuffer(8 + words.length * DIM * 4));
  bytes.setUint32(0, words.length, true);
  bytes.setUint32(4, DIM, true);
  let at = 8;
  for (const word of words) {
    for (const value of checkedVector(data, word)) {
      bytes.setFloat32(at, value, true);
      at += 4;
    }
  }
  fs.writeFileSync(path.join(directory, vectorsName), bytes);
  fs.writeFileSync(path.join(directory, wordsName), words.join('\n') + '\n');
  console.log(`glove100: ${vectorsName}: ${words.length} x ${DIM}`);
}

function main(source, directory) {
  const data = JSON.parse(fs.readFileSync(source, 'utf8'));
  if (!Array.isArray(data.words) || typeof data.vectors !== 'object') throw new Error(`${source}: no words or vectors`);
  if (data.words.some((word) => /[\r\n]/.test(word))) throw new Error('a word holds a line break');
  const queries = new Set(chooseQueries(data.words.length));
  writeSet(directory, 'base.fbin', 'words.txt', data, data.words.filter((_, row) => !queries.has(row)));
  writeSet(directory, 'queries.fbin', 'query_words.txt', data, data.words.filter((_, row) => queries.has(row)));
}

try {
  if (process.argv.length !== 4) throw new Error('usage: glove100.js PACKAGE.json DIRECTORY');
  main(process.argv[2], process.argv[3]);
} catch (error) {
  console.error(`glove100: ${error.message}`);
  process.exit(1);
}
