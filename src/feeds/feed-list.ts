import * as z from 'zod';
import {
  parseSettings,
  placeOf,
  readSettingsFile,
  SettingsFileError,
} from '../platform/environment/settings-file.js';

export const SHIPPED_FEEDS = 'datafeeds.json';

const MAX_FEEDS = 100;

/** Seconds between two fetches of a feed, unless the feed names others. */
const USUAL_REFRESH_S = 900;

/** A JSON pointer (RFC 6901); the empty one is the whole value. */
const pointer = z
  .string()
  .max(200)
  .regex(/^(\/([^~/]|~[01])*)*$/, 'it is not a JSON pointer');

const address = z
  .url({ protocol: /^https?$/, error: 'it is not an address of http or https' })
  .max(2_000);

const common = {
  id: z
    .string()
    .max(64)
    .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'it is not lower case words with hyphens'),
  name: z.string().min(1).max(100),
  description: z.string().min(1).max(500),
  url: address,
  homepage: address.optional(),
  refreshSeconds: z.int().min(60).max(86_400).default(USUAL_REFRESH_S),
};

const feed = z.discriminatedUnion('kind', [
  z.strictObject({ ...common, kind: z.literal(['rss', 'atom']) }),
  z.strictObject({
    ...common,
    kind: z.literal('json'),
    items: z.strictObject({
      /** The array of items in the document; the other pointers are into an item. */
      list: pointer,
      id: pointer.optional(),
      title: pointer.optional(),
      url: pointer.optional(),
      publishedAt: pointer.optional(),
      summary: pointer.optional(),
      value: pointer.optional(),
    }),
  }),
]);

/** A feed that the operator offers. */
export type DataFeed = z.infer<typeof feed>;

const list = z.array(z.unknown()).max(MAX_FEEDS);

/** Reads the text of a file of feeds. @throws SettingsFileError that names the wrong feed */
export function readFeeds(text: string): readonly DataFeed[] {
  const entries = list.safeParse(parseSettings(text));
  if (!entries.success) throw new SettingsFileError(`is wrong at ${placeOf(entries.error)}`);
  const feeds = entries.data.map((given, index) => {
    const { data, error } = feed.safeParse(given);
    if (data) return data;
    const named = z.looseObject({ id: z.string().max(64) }).safeParse(given).data;
    const which = named ? `the feed "${named.id}"` : `a feed without an id, number ${index + 1}`;
    throw new SettingsFileError(`has ${which} with a wrong ${placeOf(error)}`);
  });
  const ids = feeds.map(({ id }) => id);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) throw new SettingsFileError(`has the feed "${twice}" a second time`);
  return feeds;
}

/** Reads a file of feeds, by default the shipped one. @throws SettingsFileError */
export const loadFeeds = (file?: string): readonly DataFeed[] =>
  readFeeds(readSettingsFile(SHIPPED_FEEDS, file));
