import * as z from 'zod';
import { getSwarm, listSwarms } from '../../src/swarms/swarms.js';
import { person } from '../auth/person.js';
import { area } from '../http/area.js';
import { nextPageLink, page } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import {
  presentSwarm,
  presentSwarmItem,
  swarmBody,
  swarmChange,
  swarmDetail,
  swarmItem,
} from '../views/swarms.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';
import { requestedByPerson, type PersonRequest } from './person-request.js';

const PATH = '/api/swarms';

const swarmArea = area({ tag: 'Swarms', auth: person, keyScope: 'agents', limit: LIMITS.swarms });

/** Creates `GET|POST|PUT /api/swarms` (spec 4.15). Workers process the rows. */
export function swarmEndpoints({ swarms }: Pick<WebDependencies, 'swarms'>) {
  return [
    swarmArea({
      method: 'GET',
      path: PATH,
      operationId: 'getSwarms',
      summary: 'List your swarms, newest first, or get one with its members',
      query: z.object({ id: z.string().max(64).optional().describe('The swarm'), ...page }),
      responses: {
        200: z.union([
          z.strictObject({ swarms: z.array(swarmItem), count: z.int() }),
          z.strictObject({ swarm: swarmDetail }),
        ]),
      },
      errors: [404],
      async handler({ caller, query, tenant }) {
        const { id, ...paged } = query;
        if (id !== undefined) {
          return reply(200, { swarm: presentSwarm(await getSwarm(tenant, id)) });
        }
        const { limit, cursor: after } = paged;
        const { items, next } = await listSwarms(tenant, caller.user.id, { limit, after });
        const answer = { swarms: items.map(presentSwarmItem), count: items.length };
        return reply(200, answer, nextPageLink(PATH, paged, next));
      },
    }),
    swarmArea({
      method: 'POST',
      path: PATH,
      operationId: 'createSwarm',
      summary: 'Give several of your agents a task; the run starts at once',
      idempotent: true,
      limitOfCaller: LIMITS.swarmsOfUser,
      body: swarmBody,
      responses: { 201: z.strictObject({ swarm: swarmDetail }) },
      errors: [402, 404],
      async handler(request) {
        const swarm = await swarms.create(...requester(request), request.body);
        return reply(201, { swarm: presentSwarm(swarm) });
      },
    }),
    swarmArea({
      method: 'PUT',
      path: PATH,
      operationId: 'changeSwarm',
      summary: 'Cancel a swarm, or send the task again to its unfinished members',
      limitOfCaller: LIMITS.swarmsOfUser,
      body: swarmChange,
      responses: { 200: z.strictObject({ swarm: swarmDetail }) },
      errors: [402, 404, 409],
      async handler(request) {
        const { action, id } = request.body;
        const swarm = await swarms.change(...requester(request), id, action);
        return reply(200, { swarm: presentSwarm(swarm) });
      },
    }),
  ];
}

function requester(request: PersonRequest) {
  const { plan, user } = request.caller;
  return [requestedByPerson(request), { userId: user.id, isAdmin: user.isAdmin, plan }] as const;
}
