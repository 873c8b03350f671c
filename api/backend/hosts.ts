import { z } from 'zod';
import { ForbiddenError } from '../../src/errors.js';
import { freePlaces, statusOf } from '../../src/hosts/host-status.js';
import { hostLoads } from '../../src/hosts/hosts.js';
import { internalKey } from '../auth/internal-key.js';
import { endpoint } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import type { BackendDependencies } from './dependencies.js';

const hostItem = z.strictObject({
  id: z.string(),
  status: z
    .enum(['ready', 'silent', 'engine_unavailable'])
    .describe('Only a ready host gets new agents; a silent one has not been heard of for 45 s'),
  capacity: z.number().describe('Most agents on it'),
  agents: z.number().describe('Agents on it, those that are being removed included'),
  free: z.number(),
  seenAt: z.iso.datetime().describe('When its worker was last heard of'),
});

/** `GET /api/hosts`: where agents are, and where the next ones go. */
export function hostEndpoints({ database }: Pick<BackendDependencies, 'database'>) {
  return [
    endpoint({
      method: 'GET',
      path: '/api/hosts',
      summary: 'The Docker hosts, and what is on each',
      tag: 'Hosts',
      auth: internalKey,
      responses: { 200: z.array(hostItem) },
      async handler({ caller }) {
        if (caller.user) throw new ForbiddenError('Hosts are shown to the operator alone');
        const hosts = await hostLoads(database.asPlatform());
        return reply(
          200,
          hosts.map((host) => ({
            id: host.id,
            status: statusOf(host),
            capacity: host.capacity,
            agents: host.agents,
            free: freePlaces(host),
            seenAt: host.seenAt.toISOString(),
          })),
        );
      },
    }),
  ];
}
