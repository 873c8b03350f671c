import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readCatalogue, TASK_TIERS } from '../../../src/ai/models/catalogue.js';
import { loadCatalogue } from '../../../src/ai/models/catalogue-file.js';
import { ModelSet } from '../../../src/ai/models/model-set.js';
import { STALE_AFTER_DAYS, staleModels } from '../../../scripts/stale-models.js';
import { loadSettings } from '../../../src/settings.js';
import { testEnvironment } from '../../support/platform-environment.js';
import { shippedModels } from '../../support/models.js';

const DAY_MS = 24 * 60 * 60_000;

const shipped = loadCatalogue();

const LLAMA = {
  family: 'llama3.2',
  name: 'Llama 3.2',
  description: 'Small',
  tags: ['general'],
  plan: 'label',
  inputCost: 0,
  outputCost: 0,
  contextWindow: 32_768,
  maxOutput: 4_096,
  source: 'our own server',
  asOf: '2026-11-27',
  servedBy: { openai: 'llama3.2' },
};

describe('the shipped catalogue', () => {
  test.each(shipped.models.map((model) => [model.family, model] as const))(
    '%s has a source, a date and valid prices and limits',
    (_family, model) => {
      expect(model.source).not.toBe('');
      expect(Date.parse(model.asOf)).not.toBeNaN();
      const { cacheReadCost = 0.01, cacheWriteCost = 0.01 } = model;
      expect(cacheReadCost).toBeLessThan(model.inputCost);
      expect(model.cacheSource === undefined).toBe(model.cacheReadCost === undefined);
      for (const rate of [model.inputCost, model.outputCost, cacheReadCost, cacheWriteCost]) {
        expect(rate).toBeGreaterThan(0);
      }
      expect(Object.keys(model.servedBy)).toContain('openrouter');
    },
  );

  test('the shipped catalogue has a primary and two fallbacks for each tier, and a primary and a fallback for each provider', () => {
    expect(Object.keys(shipped.tiers).toSorted()).toEqual(TASK_TIERS.toSorted());
    for (const families of Object.values(shipped.tiers)) expect(families).toHaveLength(3);
    const { demo, providers } = shipped.defaults;
    expect(Object.keys(providers)).toHaveLength(6);
    for (const families of Object.values(providers)) expect(families).toHaveLength(2);
    expect(demo).toHaveLength(6);
  });

  test('lists each model of a provider once, with an id that fits a usage row', () => {
    const ids = shippedModels().current.entries.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id.length).toBeLessThanOrEqual(100);
  });

  test('lists only models whose data is older than the limit', () => {
    const [model] = shipped.models;
    if (!model) throw new Error('the catalogue is empty');
    const checked = { ...model, asOf: '2026-01-01' };
    const at = (days: number) => Date.parse(checked.asOf) + days * DAY_MS;
    expect(staleModels(at(STALE_AFTER_DAYS), [checked])).toEqual([]);
    expect(staleModels(at(STALE_AFTER_DAYS + 1), [checked])).toEqual([
      { model: checked, days: STALE_AFTER_DAYS + 1 },
    ]);
  });
});

describe('a catalogue of the operator', () => {
  const faultOf = (file: unknown) => {
    try {
      readCatalogue(typeof file === 'string' ? file : JSON.stringify(file));
    } catch (error) {
      return error instanceof Error ? error.message : error;
    }
    return undefined;
  };

  test('a catalogue needs models alone, and its order decides where it names no default', () => {
    const mistral = { ...LLAMA, family: 'mistral', servedBy: { openai: 'mistral' } };
    const catalogue = readCatalogue(JSON.stringify({ models: [LLAMA, mistral] }));
    const set = new ModelSet(catalogue, {
      openai: { baseUrl: 'http://x.test', apiKey: undefined },
    });
    expect(set.usualOf('openai').map(({ id }) => id)).toEqual([
      'openai/llama3.2',
      'openai/mistral',
    ]);
    expect(set.tier('fast')).toEqual([]);
  });

  test.each([
    [{ inputCost: -1 }, 'inputCost'],
    [{ inputCost: '1' }, 'inputCost'],
    [{ outputCost: 0.0000001 }, 'outputCost (it has more than six decimals)'],
    [{ plan: 'free' }, 'plan'],
    [{ contextWindow: 0 }, 'contextWindow'],
    [{ maxOutput: 40_000 }, 'maxOutput (it is above contextWindow)'],
    [{ asOf: 'yesterday' }, 'asOf'],
    [{ servedBy: {} }, 'servedBy (it names no provider)'],
    [{ servedBy: { ollama: 'llama3.2' } }, 'servedBy'],
    [{ servedBy: { openai: 'llama 3.2' } }, 'servedBy.openai'],
    [{ price: 1 }, 'price'],
    [{ name: undefined }, 'name'],
  ])('names the family of an entry with %j', (change, place) => {
    const fault = faultOf({ models: [LLAMA, { ...LLAMA, family: 'wrong-one', ...change }] });
    expect(fault).toContain(`has the model "wrong-one" with a wrong ${place}`);
    expect(fault).not.toContain('\n');
  });

  test.each<[string, unknown, string]>([
    ['no JSON', '{', 'is not JSON'],
    ['a list', [LLAMA], 'is wrong at entry'],
    ['no models', { models: [] }, 'is wrong at models'],
    ['an unknown field', { models: [LLAMA], model: 1 }, 'is wrong at model'],
    ['a model without a family', { models: [{}] }, 'has a model without a family, number 1'],
    [
      'a family twice',
      { models: [LLAMA, LLAMA] },
      'has the model "llama3.2" with "llama3.2" a second time',
    ],
    [
      "a provider's name twice",
      { models: [LLAMA, { ...LLAMA, family: 'other' }] },
      'has the model "other" with "openai/llama3.2" a second time',
    ],
    [
      'a tier with an unknown model',
      { models: [LLAMA], tiers: { fast: ['gone'] } },
      'names the model "gone" in tiers.fast, but has no such model',
    ],
    [
      'a tier with a model that openrouter does not serve',
      { models: [LLAMA], tiers: { fast: ['llama3.2'] } },
      'names the model "llama3.2" in tiers.fast, but openrouter does not serve it',
    ],
    [
      "another provider's default",
      { models: [LLAMA], defaults: { providers: { groq: ['llama3.2'] } } },
      'names the model "llama3.2" in defaults.providers.groq, but groq does not serve it',
    ],
    [
      'an unknown default of agents',
      { models: [LLAMA], defaults: { agents: ['gone'] } },
      'names the model "gone" in defaults.agents, but has no such model',
    ],
  ])('refuses %s', (_what, file, fault) => {
    expect(faultOf(file)).toContain(fault);
  });
});

describe('AI_MODELS_FILE', () => {
  const env = (file: string) =>
    testEnvironment({
      DATABASE_URL: 'postgres://x/y',
      INTERNAL_API_KEY: 'k',
      AI_MODELS_FILE: file,
    });

  function fileOf(text: string): string {
    const folder = mkdtempSync(path.join(tmpdir(), 'aps-models-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = path.join(folder, 'models.json');
    writeFileSync(file, text);
    return file;
  }

  test('replaces the shipped catalogue', () => {
    const { ai } = loadSettings(env(fileOf(JSON.stringify({ models: [LLAMA] }))));
    expect(ai.catalogue.models).toEqual([LLAMA]);
  });

  test('stops the start with one sentence that names the family of a wrong entry', () => {
    const wrong = { models: [{ ...LLAMA, plan: 'free' }] };
    expect(() => loadSettings(env(fileOf(JSON.stringify(wrong))))).toThrow(
      /^The environment is not usable:\n {2}- the file that AI_MODELS_FILE names has the model "llama3\.2" with a wrong plan \(.*\)$/,
    );
  });

  test('stops the start if it names no file, a folder, or a file of more than 1 MiB', () => {
    const large = fileOf('{}');
    truncateSync(large, 1024 * 1024 + 1);
    for (const [file, fault] of [
      ['/nowhere/models.json', 'cannot be read'],
      [path.dirname(large), 'cannot be read'],
      [large, 'is larger than 1 MiB'],
    ] as const) {
      expect(() => loadSettings(env(file))).toThrow(`the file that AI_MODELS_FILE names ${fault}`);
    }
  });
});
