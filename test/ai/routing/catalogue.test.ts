import { describe, expect, test } from 'vitest';
import { CATALOGUE } from '../../../src/ai/routing/catalogue-data.js';
import { MODELS } from '../../../src/ai/routing/catalogue.js';
import { STALE_AFTER_DAYS, staleModels } from '../../../scripts/stale-models.js';

const DAY_MS = 24 * 60 * 60_000;

describe('the model catalogue', () => {
  test.each(CATALOGUE.map((model) => [model.family, model] as const))(
    '%s has a source, a date and valid prices and limits',
    (_family, model) => {
      expect(model.source).not.toBe('');
      expect(Date.parse(model.asOf)).not.toBeNaN();
      const { cacheReadCost = 0.01, cacheWriteCost = 0.01 } = model;
      expect(cacheReadCost).toBeLessThan(model.inputCost);
      expect(model.cacheSource === undefined).toBe(model.cacheReadCost === undefined);
      for (const rate of [model.inputCost, model.outputCost, cacheReadCost, cacheWriteCost]) {
        expect(Number(rate.toFixed(6))).toBe(rate);
        expect(rate).toBeGreaterThan(0);
      }
      expect(model.maxOutput).toBeGreaterThan(0);
      expect(model.contextWindow).toBeGreaterThanOrEqual(model.maxOutput);
      expect(Object.keys(model.servedBy)).toContain('openrouter');
    },
  );

  test('lists each model of a provider once, with an id that fits a usage row', () => {
    const ids = MODELS.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id.length).toBeLessThanOrEqual(100);
  });

  test('lists only models whose data is older than the limit', () => {
    const [model] = CATALOGUE;
    if (!model) throw new Error('the catalogue is empty');
    const looked = { ...model, asOf: '2026-01-01' };
    const at = (days: number) => Date.parse(looked.asOf) + days * DAY_MS;
    expect(staleModels(at(STALE_AFTER_DAYS), [looked])).toEqual([]);
    expect(staleModels(at(STALE_AFTER_DAYS + 1), [looked])).toEqual([
      { model: looked, days: STALE_AFTER_DAYS + 1 },
    ]);
  });
});
