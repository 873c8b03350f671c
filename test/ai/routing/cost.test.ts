import { describe, expect, test } from 'vitest';
import { shippedModels } from '../../support/models.js';
import { costOf } from '../../../src/ai/routing/cost.js';

const cost = (inputCost: number, outputCost: number, inputTokens: number, outputTokens: number) =>
  costOf({ inputCost, outputCost }, { inputTokens, outputTokens });

describe('the cost of a call', () => {
  test.each([
    [1, 1, 0, 0, '0.000000'],
    [1, 1, 1_000_000, 0, '1.000000'],
    [1, 1, 1, 0, '0.000001'],
    [0.1, 0.2, 1_000_000, 1_000_000, '0.300000'],
    [0.1, 0.5, 3, 2, '0.000001'],
    [0.075, 0.3, 1, 1, '0.000000'],
    [0.075, 0.3, 7, 0, '0.000001'],
    [0.000001, 0, 1_000_000, 0, '0.000001'],
    [0.000001, 0, 499_999, 0, '0.000000'],
    [0.000001, 0, 500_000, 0, '0.000001'],
    [1.1, 2.2, 3, 3, '0.000010'],
    [0.57, 0, 100, 0, '0.000057'],
    [1.005, 0, 1_000, 0, '0.001005'],
    [4.35, 0, 100, 0, '0.000435'],
    [30, 60, 50_000_000, 50_000_000, '4500.000000'],
    [0.123457, 0.765433, 8_123_457, 9_876_543, '8.562730'],
  ])('rates of $%d and $%d for %d and %d tokens cost $%s', (...[a, b, c, d, expected]) => {
    expect(cost(a, b, c, d)).toBe(expected);
  });

  test('rounds the cost once, half up', () => {
    // Each single part rounds down to zero; the sum is half a millionth.
    expect(cost(0.25, 0.25, 1, 0)).toBe('0.000000');
    expect(cost(0.25, 0.25, 1, 1)).toBe('0.000001');
    expect(cost(0.5, 0, 1, 0)).toBe('0.000001');
    expect(cost(0.5, 0, 3, 0)).toBe('0.000002');
  });

  test('tokens of the prompt cache have their own rates, and otherwise that of other input', () => {
    const usage = {
      inputTokens: 1_000_000,
      outputTokens: 0,
      cacheReadTokens: 900_000,
      cacheWriteTokens: 50_000,
    };
    const rates = { inputCost: 5, outputCost: 25 };
    expect(costOf(rates, usage)).toBe('5.000000');
    const own = { ...rates, cacheReadCost: 0.5, cacheWriteCost: 6.25 };
    expect(costOf(own, usage)).toBe('1.012500');
    expect(costOf({ ...rates, cacheReadCost: 0.5 }, usage)).toBe('0.950000');
  });

  test('the cost of a model without a rate is zero', () => {
    expect(costOf(undefined, { inputTokens: 5, outputTokens: 5 })).toBe('0.000000');
  });

  test('the cost is exact for every model in the catalogue', () => {
    for (const model of shippedModels().current.entries) {
      // The expected cost in exact integers: millionths of a dollar.
      const [a, b] = [model.inputCost, model.outputCost].map((rate) =>
        BigInt(rate.toFixed(6).replace('.', '')),
      );
      const [input, output] = [1_234_567n, 7_654_321n];
      const sum = ((a ?? 0n) * input + (b ?? 0n) * output + 500_000n) / 1_000_000n;
      const text = sum.toString().padStart(7, '0');
      const tokens = { inputTokens: Number(input), outputTokens: Number(output) };
      expect([model.id, costOf(model, tokens)]).toEqual([
        model.id,
        `${text.slice(0, -6)}.${text.slice(-6)}`,
      ]);
    }
  });
});
