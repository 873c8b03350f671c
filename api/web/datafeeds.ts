import * as z from 'zod';
import { FEED_STATUSES, type ListedFeed } from '../../src/feeds/data-feeds.js';
import { person } from '../auth/person.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const feed = z
  .strictObject({
    id: z.string().meta({ examples: ['hacker-news'] }),
    name: z.string(),
    description: z.string(),
    kind: z.enum(['rss', 'atom', 'json']),
    homepage: z.string().nullable(),
    refreshSeconds: z.int(),
    lastFetchedAt: z.iso.datetime().nullable(),
    status: z.enum(FEED_STATUSES),
  })
  .meta({ id: 'DataFeed' });

const item = z
  .strictObject({
    id: z.string(),
    title: z.string().nullable(),
    url: z.string().nullable(),
    publishedAt: z.iso.datetime().nullable(),
    summary: z.string().nullable(),
    value: z.union([z.string(), z.number(), z.boolean()]).nullable(),
  })
  .meta({ id: 'DataFeedItem' });

const presentFeed = ({ homepage, lastFetchedAt, ...rest }: ListedFeed) => ({
  ...rest,
  homepage: homepage ?? null,
  lastFetchedAt: lastFetchedAt?.toISOString() ?? null,
});

/** Creates `GET /api/datafeeds` (spec 4.15), equal for all users. */
export function dataFeedEndpoints({ dataFeeds }: Pick<WebDependencies, 'dataFeeds'>) {
  return [
    area({ tag: 'Data feeds', auth: person, keyScope: 'agents', limit: LIMITS.dataFeeds })({
      method: 'GET',
      path: '/api/datafeeds',
      operationId: 'readDataFeeds',
      summary: 'List the data feeds, or read one',
      query: z.object({
        feed: z
          .string()
          .max(64)
          .optional()
          .describe('The feed to read; without it, all feeds are listed'),
      }),
      responses: {
        200: z.union([
          z.strictObject({ feeds: z.array(feed), count: z.int() }),
          z.strictObject({
            feed,
            items: z.array(item),
            count: z.int(),
            fetchedAt: z.iso.datetime(),
            stale: z.boolean().describe('True if the last fetch failed'),
          }),
        ]),
      },
      errors: [404, 502],
      async handler({ query, signal }) {
        if (query.feed === undefined) {
          const feeds = (await dataFeeds.list()).map(presentFeed);
          return reply(200, { feeds, count: feeds.length });
        }
        const { fetchedAt, items, stale, ...found } = await dataFeeds.read(query.feed, signal);
        return reply(200, {
          feed: presentFeed(found.feed),
          items: [...items],
          count: items.length,
          fetchedAt: fetchedAt.toISOString(),
          stale,
        });
      },
    }),
  ];
}
