import * as z from 'zod';
import {
  parseSettings,
  placeOf,
  SettingsFileError,
} from '../../platform/environment/settings-file.js';
import { PLANS, type Plan } from '../../types/plans.js';
import { PROVIDER_NAMES, type ProviderName } from '../completion/provider-names.js';

export const TASK_TIERS = ['reasoning', 'coding', 'fast', 'creative'] as const;

export type TaskTier = (typeof TASK_TIERS)[number];

/** A model, with each provider's name for it. */
export interface CatalogueModel {
  readonly family: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  /** The lowest plan that includes the model; higher plans include it too. */
  readonly plan: Plan;
  /** US dollars per million tokens, with at most six decimals. */
  readonly inputCost: number;
  readonly outputCost: number;
  /** Rates of input that comes from the prompt cache, and of input that is written to it, if they differ. */
  readonly cacheReadCost?: number | undefined;
  readonly cacheWriteCost?: number | undefined;
  /** Tokens. */
  readonly contextWindow: number;
  readonly maxOutput: number;
  /** Source of rates and sizes, with the date on which they were read. */
  readonly source: string;
  readonly asOf: string;
  /** Source of the cache rates. */
  readonly cacheSource?: string | undefined;
  readonly servedBy: Partial<Readonly<Record<ProviderName, string>>>;
}

/** The content of `models.json` (spec 4.8); lists name families, best first. */
export interface Catalogue {
  readonly models: readonly CatalogueModel[];
  /** The primary of each tier and its fallbacks, all through openrouter. */
  readonly tiers: Partial<Readonly<Record<TaskTier, readonly string[]>>>;
  readonly defaults: {
    /** The primary of each provider, and its fallback. */
    readonly providers: Partial<Readonly<Record<ProviderName, readonly string[]>>>;
    /** The models of an agent whose owner chose none. */
    readonly agents: readonly string[];
    readonly demo: readonly string[];
    /** The models that the gateway sells at its fixed price. */
    readonly gateway: readonly string[];
  };
}

const MAX_MODELS = 1_000;
const MAX_RATE = 1_000_000;
const MAX_TOKENS = 100_000_000;
/** Length of an id in a usage row. */
const MAX_ID_LENGTH = 100;

const line = (most: number) => z.string().min(1).max(most);

const family = line(MAX_ID_LENGTH);

const rate = z
  .number()
  .min(0)
  .max(MAX_RATE)
  .refine((value) => Number(value.toFixed(6)) === value, 'it has more than six decimals');

const tokens = z.number().int().min(1).max(MAX_TOKENS);

const providerModel = z
  .string()
  .regex(/^[\x21-\x7e]+$/, 'it is not one word of visible ASCII characters');

const model = z
  .strictObject({
    family,
    name: line(100),
    description: line(500),
    tags: z.array(line(50)).max(20),
    plan: z.enum(PLANS),
    inputCost: rate,
    outputCost: rate,
    cacheReadCost: rate.optional(),
    cacheWriteCost: rate.optional(),
    contextWindow: tokens,
    maxOutput: tokens,
    source: line(500),
    asOf: z.iso.date(),
    cacheSource: line(500).optional(),
    servedBy: z
      .partialRecord(z.enum(PROVIDER_NAMES), providerModel)
      .refine((names) => Object.keys(names).length > 0, 'it names no provider'),
  })
  .refine(({ contextWindow, maxOutput }) => maxOutput <= contextWindow, {
    path: ['maxOutput'],
    error: 'it is above contextWindow',
  });

const families = (most: number) => z.array(family).max(most);

const lists = z.strictObject({
  tiers: z.partialRecord(z.enum(TASK_TIERS), families(3).min(1)).default({}),
  defaults: z
    .strictObject({
      providers: z.partialRecord(z.enum(PROVIDER_NAMES), families(2).min(1)).default({}),
      agents: families(100).default([]),
      demo: families(6).default([]),
      gateway: families(100).default([]),
    })
    .prefault({}),
});

const file = lists.extend({ models: z.array(z.unknown()).min(1).max(MAX_MODELS) });

/** Reads a catalogue. @throws SettingsFileError that names the family of the wrong entry */
export function readCatalogue(text: string): Catalogue {
  const { data, error } = file.safeParse(parseSettings(text));
  if (error) throw new SettingsFileError(`is wrong at ${placeOf(error)}`);
  const models = data.models.map(readModel);
  requireUnique(models);
  const { tiers, defaults } = data;
  const known = new Map(models.map((each) => [each.family, each]));
  const named = [
    ...Object.entries(tiers).map(([task, list]) => [`tiers.${task}`, list, 'openrouter'] as const),
    ...Object.entries(defaults.providers).map(
      ([name, list]) => [`defaults.providers.${name}`, list, name] as const,
    ),
    ...(['agents', 'demo', 'gateway'] as const).map(
      (use) => [`defaults.${use}`, defaults[use], undefined] as const,
    ),
  ];
  for (const [place, list, provider] of named) {
    for (const each of list) requireServed(place, each, known.get(each), provider);
  }
  return { models, tiers, defaults };
}

function readModel(given: unknown, index: number): CatalogueModel {
  const { data, error } = model.safeParse(given);
  if (data) return data;
  const known = z.looseObject({ family }).safeParse(given).data;
  const name = known
    ? `the model "${known.family}"`
    : `a model without a family, number ${index + 1}`;
  throw new SettingsFileError(`has ${name} with a wrong ${placeOf(error)}`);
}

function requireUnique(models: readonly CatalogueModel[]): void {
  const seen = new Set<string>();
  for (const { family: own, servedBy } of models) {
    const ids = Object.entries(servedBy).map(([provider, name]) => `${provider}/${name}`);
    for (const id of [own, ...ids]) {
      if (seen.has(id))
        throw new SettingsFileError(`has the model "${own}" with "${id}" a second time`);
      if (id.length > MAX_ID_LENGTH) {
        throw new SettingsFileError(
          `has the model "${own}" with a name of more than ${MAX_ID_LENGTH} characters`,
        );
      }
      seen.add(id);
    }
  }
}

function requireServed(
  place: string,
  name: string,
  found: CatalogueModel | undefined,
  provider: string | undefined,
): void {
  if (!found)
    throw new SettingsFileError(`names the model "${name}" in ${place}, but has no such model`);
  if (provider !== undefined && !Object.hasOwn(found.servedBy, provider)) {
    throw new SettingsFileError(
      `names the model "${name}" in ${place}, but ${provider} does not serve it`,
    );
  }
}
