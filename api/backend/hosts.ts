import * as z from 'zod';
import { EGRESS_STATUSES } from '../../src/docker/egress/host-egress.js';
import { freePlaces, HOST_STATUSES, statusOf } from '../../src/agents/hosts/host-status.js';
import { hostDetails, type HostDetail } from '../../src/agents/hosts/hosts.js';
import { admin, operator } from '../auth/admin.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import type { BackendDependencies } from './dependencies.js';
import { requestedBy } from './requested-by.js';

const hostId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'is no name of a host')
  .describe('The host');

const hostItem = z
  .strictObject({
    id: z.string().meta({ examples: ['local'] }),
    status: z
      .enum(HOST_STATUSES)
      .describe('Only a ready host gets new agents; a silent host has not reported for 45 s'),
    capacity: z.int().describe('Maximum number of agents on the host'),
    agents: z.int().describe('Agents on the host, including agents being removed'),
    free: z.int(),
    cordoned: z.boolean().describe('True if an operator excluded the host from new agents'),
    seenAt: z.iso.datetime().describe("Time of the worker's last report"),
    engineId: z.string().nullable().describe("Docker's id of the engine with this host name"),
    url: z
      .string()
      .nullable()
      .describe("URL at which API processes reach the host's worker; null if it has none"),
    diskFree: z
      .number()
      .nullable()
      .describe("Free bytes on the disk that holds the engine's volumes; null if unknown"),
    network: z
      .enum(EGRESS_STATUSES)
      .describe('guarded: agents reach only the public internet and the AI listener'),
    networkReason: z
      .string()
      .nullable()
      .describe('Why the network is not guarded, or another remark'),
    userNamespaces: z
      .boolean()
      .nullable()
      .describe(
        'True if container users, root included, have no privileges on the host; null if unknown',
      ),
  })
  .meta({ id: 'Host' });

const hosts = area({ tag: 'Hosts', auth: admin, keyScope: 'agents' });
const ofHost = area({
  tag: 'Hosts',
  auth: operator,
  params: z.object({ id: hostId }),
  errors: [404, 409],
});

/** Creates the `/api/hosts` endpoints: list, cordon, uncordon, drain and remove hosts. */
export function hostEndpoints(dependencies: Pick<BackendDependencies, 'database' | 'hosts'>) {
  const { database, hosts: operations } = dependencies;
  return [
    hosts({
      method: 'GET',
      path: '/api/hosts',
      operationId: 'listHosts',
      summary: 'List the Docker hosts with the load of each',
      responses: { 200: z.array(hostItem) },
      async handler() {
        return reply(200, (await hostDetails(database)).map(presentHost));
      },
    }),
    ofHost({
      method: 'POST',
      path: '/api/hosts/:id/cordon',
      operationId: 'cordonHost',
      summary: 'Cordon a host: it gets no new agents, and its agents keep running',
      responses: { 200: z.strictObject({ id: z.string(), cordoned: z.literal(true) }) },
      async handler(request) {
        const { id } = request.params;
        await operations.cordon(requestedBy(request), id);
        return reply(200, { id, cordoned: true });
      },
    }),
    ofHost({
      method: 'POST',
      path: '/api/hosts/:id/uncordon',
      operationId: 'uncordonHost',
      summary: 'Uncordon a host: it gets new agents again',
      responses: { 200: z.strictObject({ id: z.string(), cordoned: z.literal(false) }) },
      async handler(request) {
        const { id } = request.params;
        await operations.uncordon(requestedBy(request), id);
        return reply(200, { id, cordoned: false });
      },
    }),
    ofHost({
      method: 'POST',
      path: '/api/hosts/:id/drain',
      operationId: 'drainHost',
      summary: 'Drain a host: cordon it and stop its agents, 200 per call; memories are kept',
      responses: {
        202: z.strictObject({
          id: z.string(),
          cordoned: z.literal(true),
          began: z.array(z.strictObject({ agentId: z.string(), operationId: z.string() })),
          refused: z
            .array(z.strictObject({ agentId: z.string(), error: z.string() }))
            .describe('Agents whose stop could not be requested: call again'),
          remaining: z.int().describe('Agents whose stop has not begun: call again'),
        }),
      },
      async handler(request) {
        const { id } = request.params;
        const drained = await operations.drain(requestedBy(request), id);
        return reply(202, { id, cordoned: true, ...drained });
      },
    }),
    ofHost({
      method: 'DELETE',
      path: '/api/hosts/:id',
      operationId: 'removeHost',
      summary:
        'Remove a host that will not come back; without `confirm`, only lists the data that would be lost',
      query: z.object({
        confirm: z
          .string()
          .max(64)
          .optional()
          .describe("The host's id, to confirm the loss of data"),
      }),
      responses: { 202: z.strictObject({ id: z.string(), status: z.literal('removing') }) },
      async handler(request) {
        const { id } = request.params;
        await operations.remove(requestedBy(request), id, request.query.confirm);
        return reply(202, { id, status: 'removing' });
      },
    }),
  ];
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
