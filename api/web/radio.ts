import * as z from 'zod';
import { visibleName } from '../../src/lib/visible-name.js';
import type { RadioStream } from '../../src/radio/streams.js';
import { RADIO_FORMATS, RADIO_STATUSES } from '../../src/types/radio.js';
import { person } from '../auth/person.js';
import { area } from '../http/area.js';
import { nextPageLink, page } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';
import { requestedByPerson } from './person-request.js';

const PATH = '/api/radio/streams';

const radio = area({
  tag: 'Radio',
  auth: person,
  keyScope: 'agents',
  limit: LIMITS.radio,
  errors: [503],
});

const stream = z
  .strictObject({
    id: z.string(),
    title: z.string(),
    description: z.string().nullable(),
    genre: z.string().nullable(),
    agentId: z.string().nullable(),
    format: z.enum(RADIO_FORMATS),
    status: z.enum(RADIO_STATUSES),
    bitrate: z.int().nullable().describe('Measured, in kbit/s'),
    listeners: z.int().nullable(),
    peakListeners: z.int(),
    nowPlaying: z.string().nullable(),
    startedAt: z.iso.datetime().nullable(),
    listenUrl: z.string().describe('Address for the source and for players'),
    createdAt: z.iso.datetime(),
  })
  .meta({ id: 'RadioStream' });

const streams = z.strictObject({ streams: z.array(stream), count: z.int() });

const id = z.string().min(1).max(64);

const present = ({ createdAt, startedAt, ...rest }: RadioStream) => ({
  ...rest,
  startedAt: startedAt?.toISOString() ?? null,
  createdAt: createdAt.toISOString(),
});

/** Returns the function that makes one frozen body of each list, which all its readers share. */
function sharedList() {
  const bodies = new WeakMap<readonly RadioStream[], z.input<typeof streams>>();
  return (live: readonly RadioStream[]) => {
    const known = bodies.get(live);
    if (known) return known;
    const body = Object.freeze({ streams: live.map(present), count: live.length });
    bodies.set(live, body);
    return body;
  };
}

/** Creates `GET /api/radio/live` and `GET|POST|DELETE /api/radio/streams` (spec 4.12). */
export function radioEndpoints({ radioStreams }: Pick<WebDependencies, 'radioStreams'>) {
  const listed = sharedList();
  return [
    radio({
      method: 'GET',
      path: '/api/radio/live',
      operationId: 'listLiveStreams',
      summary: 'List the live streams of all users',
      responses: { 200: streams },
      async handler() {
        return reply(200, listed(await radioStreams.live()));
      },
    }),
    radio({
      method: 'GET',
      path: PATH,
      operationId: 'getStreams',
      summary: 'List your streams, newest first, or get one',
      query: z.object({ id: id.optional().describe('The stream'), ...page }),
      responses: { 200: z.union([streams, z.strictObject({ stream })]) },
      errors: [404],
      async handler({ query: { id: one, ...paged }, tenant }) {
        if (one !== undefined) {
          return reply(200, { stream: present(await radioStreams.get(tenant, one)) });
        }
        const { limit, cursor: after } = paged;
        const { items, next } = await radioStreams.list(tenant, { limit, after });
        const answer = { streams: items.map(present), count: items.length };
        return reply(200, answer, nextPageLink(PATH, paged, next));
      },
    }),
    radio({
      method: 'POST',
      path: PATH,
      operationId: 'createStream',
      summary: "Create a stream, as a holder of the platform's token",
      limitOfCaller: LIMITS.radioStreamsOfUser,
      idempotent: true,
      body: z.strictObject({
        title: visibleName(100),
        description: z.string().max(1_000).optional(),
        genre: visibleName(50).optional(),
        format: z.enum(RADIO_FORMATS).default('mp3'),
        agentId: id.optional(),
      }),
      responses: {
        201: z.strictObject({
          stream,
          sourcePassword: z
            .string()
            .describe('Shown once; the user is `source`')
            .meta({ examples: ['k3V…'] }),
        }),
      },
      errors: [403, 404, 409],
      async handler(request) {
        const made = await radioStreams.create(requestedByPerson(request), request.body);
        const { sourcePassword } = made;
        return reply(201, { stream: present(made.stream), sourcePassword });
      },
    }),
    radio({
      method: 'DELETE',
      path: PATH,
      operationId: 'deleteStream',
      summary: 'Delete a stream, and end its source',
      limitOfCaller: LIMITS.radioStreamsOfUser,
      query: z.object({ id: id.describe('The stream') }),
      responses: { 200: z.strictObject({ success: z.literal(true) }) },
      errors: [404],
      async handler(request) {
        await radioStreams.remove(requestedByPerson(request), request.query.id);
        return reply(200, { success: true });
      },
    }),
  ];
}
