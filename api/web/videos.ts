import * as z from 'zod';
import { getVideo, listVideos } from '../../src/videos/videos.js';
import { person } from '../auth/person.js';
import { area } from '../http/area.js';
import { rangeReply } from '../http/byte-range.js';
import { nextPageLink, page } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import { presentVideo, video, videoBody } from '../views/videos.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';
import { providerWebhook } from './provider-webhook.js';
import { requestedByPerson } from './person-request.js';

const PATH = '/api/generate-video';

const videos = area({ tag: 'Videos', auth: person, keyScope: 'agents', limit: LIMITS.videos });

/** Creates the endpoints of videos, and the webhook of their provider (spec 4.15). Workers process the rows. */
export function videoEndpoints(services: Pick<WebDependencies, 'videoEvents' | 'videos'>) {
  return [
    videos({
      method: 'POST',
      path: PATH,
      operationId: 'createVideo',
      summary: 'Create a video from a prompt; the work starts at once',
      idempotent: true,
      limitOfCaller: LIMITS.videosOfUser,
      body: videoBody,
      responses: { 202: z.strictObject({ video }) },
      errors: [402, 404, 503],
      async handler(request) {
        const { plan, user } = request.caller;
        const made = await services.videos.create(
          requestedByPerson(request),
          { userId: user.id, isAdmin: user.isAdmin, plan },
          request.body,
        );
        return reply(202, { video: presentVideo(made) });
      },
    }),
    videos({
      method: 'GET',
      path: PATH,
      operationId: 'getVideos',
      summary: 'List your videos, newest first, or get one',
      query: z.object({ id: z.string().max(64).optional().describe('The video'), ...page }),
      responses: {
        200: z.union([
          z.strictObject({ videos: z.array(video), count: z.int() }),
          z.strictObject({ video }),
        ]),
      },
      errors: [404],
      async handler({ caller, query, tenant }) {
        const { id, ...paged } = query;
        if (id !== undefined) {
          return reply(200, { video: presentVideo(await getVideo(tenant, id)) });
        }
        const { limit, cursor: after } = paged;
        const { items, next } = await listVideos(tenant, caller.user.id, { limit, after });
        const answer = { videos: items.map(presentVideo), count: items.length };
        return reply(200, answer, nextPageLink(PATH, paged, next));
      },
    }),
    videos({
      method: 'GET',
      path: `${PATH}/:id/file`,
      operationId: 'getVideoFile',
      summary: 'Get the file of a video, or a range of its bytes',
      params: z.object({ id: z.string().max(64).describe('The video') }),
      headers: z.object({
        range: z.string().optional().describe('Range of bytes, like `bytes=0-1023`'),
      }),
      responses: { 200: 'file', 206: 'file', 416: z.strictObject({ error: z.string() }) },
      errors: [404],
      async handler({ headers, params, tenant }) {
        const { contentType, handle, size } = await services.videos.open(tenant, params.id);
        return rangeReply(headers.range, {
          contentType,
          size,
          open: (start, end) => handle.createReadStream({ start, end }),
          discard: () => void handle.close(),
        });
      },
    }),
    providerWebhook(services.videoEvents, {
      tag: 'Videos',
      path: '/api/webhooks/video',
      operationId: 'receiveVideoEvent',
      summary: 'Report an event of the video provider; its signature authenticates it',
    }),
  ];
}
