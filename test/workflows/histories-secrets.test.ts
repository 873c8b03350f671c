// @module-tag attack
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { secretsOfMoneyIn } from '../support/chain/money-secrets.js';
import { textsOf } from '../support/histories.js';
import { historyFromText } from './support/kept-history.js';

const FOLDER = path.join(import.meta.dirname, 'histories');

test.each(readdirSync(FOLDER))(
  'the recorded history %s contains no key and no session secret',
  (file) => {
    const texts = textsOf(historyFromText(readFileSync(path.join(FOLDER, file), 'utf8')));
    expect(texts.length).toBeGreaterThan(10);
    expect(secretsOfMoneyIn(texts)).toEqual([]);
  },
);
