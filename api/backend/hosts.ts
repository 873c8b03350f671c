import * as z from 'zod';
import { EGRESS_STATUSES } from '../../src/docker/egress/host-egress.js';
import { ForbiddenError } from '../../src/lib/errors.js';
import { freePlaces, HOST_STATUSES, statusOf } from '../../src/agents/hosts/host-status.js';
import { hostDetails, type HostDetail } from '../../src/agents/hosts/hosts.js';
import { admin } from '../auth/admin.js';
import { internalKey, type InternalCaller } from '../auth/internal-key.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import type { BackendDependencies } from './dependencies.js';
import { requestedBy } from './requested-by.js';

const hostId = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'is no name of a host');

const hostItem = z.strictObject({
  id: z.string(),
  status: z
    .enum(HOST_STATUSES)
    .describe('Only a ready host gets new agents; a silent one has not been heard of for 45 s'),
  capacity: z.number().describe('Most agents on it'),
  agents: z.number().describe('Agents on it, those that are being removed included'),
  free: z.number(),
  cordoned: z.boolean().describe('Whether an operator keeps new agents away'),
  seenAt: z.iso.datetime().describe('When its worker was last heard of'),
  engineId: z.string().nullable().describe("Docker's own id of the engine that has the name"),
  url: z.string().nullable().describe('Where API processes reach its worker; null: not at all'),
  diskFree: z
    .number()
    .nullable()
    .describe('Bytes free where its engine keeps volumes; null when not known'),
  network: z
    .enum(EGRESS_STATUSES)
    .describe('guarded: its agents reach the public internet and the AI listener alone'),
  networkReason: z.string().nullable().describe('Why it is not, or what else there is to say'),
  userNamespaces: z
    .boolean()
    .nullable()
    .describe('Whether root and users of its containers are nobody on it; null when not known'),
});

const hosts = area({ tag: 'Hosts', auth: admin });
const ofHost = area({
  tag: 'Hosts',
  auth: internalKey,
  params: z.object({ id: hostId }),
  errors: [403, 404, 409],
});

/** `/api/hosts`: where agents are, where the next ones go, and what operators do about it. */
export function hostEndpoints(dependencies: Pick<BackendDependencies, 'database' | 'hosts'>) {
  const { database, hosts: operations } = dependencies;
  return [
    hosts({
      method: 'GET',
      path: '/api/hosts',
      summary: 'The Docker hosts, and what is on each',
      responses: { 200: z.array(hostItem) },
      async handler() {
        return reply(200, (await hostDetails(database)).map(presentHost));
      },
    }),
    ofHost({
      method: 'POST',
      path: '/api/hosts/:id/cordon',
      summary: 'Keep new agents away from a host; those on it run on',
      responses: { 200: z.strictObject({ id: z.string(), cordoned: z.literal(true) }) },
      async handler(request) {
        const { id } = request.params;
        requireOperator(request.caller);
        await operations.cordon(requestedBy(request), id);
        return reply(200, { id, cordoned: true });
      },
    }),
    ofHost({
      method: 'POST',
      path: '/api/hosts/:id/uncordon',
      summary: 'Let new agents come to a host again',
      responses: { 200: z.strictObject({ id: z.string(), cordoned: z.literal(false) }) },
      async handler(request) {
        const { id } = request.params;
        requireOperator(request.caller);
        await operations.uncordon(requestedBy(request), id);
        return reply(200, { id, cordoned: false });
      },
    }),
    ofHost({
      method: 'POST',
      path: '/api/hosts/:id/drain',
      summary: 'Cordon a host and stop its agents, 200 a call; their memories stay',
      responses: {
        202: z.strictObject({
          id: z.string(),
          cordoned: z.literal(true),
          began: z.array(z.strictObject({ agentId: z.string(), operationId: z.string() })),
          refused: z
            .array(z.strictObject({ agentId: z.string(), error: z.string() }))
            .describe('Agents that could not be told to stop now: call it again'),
          remaining: z.number().describe('Agents that no stop was begun for yet: call it again'),
        }),
      },
      async handler(request) {
        const { id } = request.params;
        requireOperator(request.caller);
        const drained = await operations.drain(requestedBy(request), id);
        return reply(202, { id, cordoned: true, ...drained });
      },
    }),
    ofHost({
      method: 'DELETE',
      path: '/api/hosts/:id',
      summary: 'Remove a host that will not come back; says first what is lost with it',
      query: z.object({ confirm: z.string().max(64).optional().describe("The host's id") }),
      responses: { 202: z.strictObject({ id: z.string(), status: z.literal('removing') }) },
      async handler(request) {
        const { id } = request.params;
        requireOperator(request.caller);
        await operations.remove(requestedBy(request), id, request.query.confirm);
        return reply(202, { id, status: 'removing' });
      },
    }),
  ];
}

function requireOperator({ user }: InternalCaller): void {
  if (user) throw new ForbiddenError('Hosts are for the operator alone');
}

const presentHost = (host: HostDetail): z.infer<typeof hostItem> => ({
  id: host.id,
  status: statusOf(host),
  capacity: host.capacity,
  agents: host.agents,
  free: freePlaces(host),
  cordoned: host.cordoned,
  seenAt: host.seenAt.toISOString(),
  engineId: host.engineId,
  url: host.url,
  diskFree: host.diskFree,
  network: host.egress,
  networkReason: host.egressReason,
  userNamespaces: host.userNamespaces,
});
