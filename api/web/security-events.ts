import * as z from 'zod';
import { ANNOUNCED_TYPES } from '../../src/accounts/security-events/event-types.js';
import type { EventMatching } from '../../src/accounts/security-events/receive-events.js';
import { anonymous } from '../auth/anonymous.js';
import { area } from '../http/area.js';
import type { BodyFormat } from '../http/body-format.js';
import { reply } from '../http/reply.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const PATH = '/api/security/risc';

/** A signed token in compact (ASCII) form; the verification rejects any other text. */
const token: BodyFormat<string> = {
  types: [],
  maxBytes: 64 * 1024,
  schema: z.string().describe('A security event token (RFC 8417), signed by the identity provider'),
  read: (bytes) => (bytes ?? '').toString('latin1').trim(),
};

const securityEvents = area({ tag: 'Security events', auth: anonymous });

/** Creates the receivers of the identity provider's account events (spec 4.2 and 6). */
export function securityEventEndpoints({ settings, securityEvents: events }: WebDependencies) {
  const receiver = (path: string, operationId: string, summary: string, matching: EventMatching) =>
    securityEvents({
      method: 'POST',
      path,
      operationId,
      summary,
      body: token,
      limit: LIMITS.securityEvents,
      responses: { 202: 'empty' },
      errors: [503],
      async handler({ body }) {
        await events.receive(body, matching);
        return reply(202);
      },
    });
  return [
    receiver(
      PATH,
      'receiveSecurityEvent',
      'Report a security event of an account at the identity provider',
      'subject',
    ),
    receiver(
      '/api/auth/google/risc',
      'receiveSecurityEventByEmail',
      'Legacy receiver: accounts are found only by their address',
      'email',
    ),
    securityEvents({
      method: 'GET',
      path: PATH,
      operationId: 'describeSecurityEvents',
      summary: 'List the supported security events and their endpoint',
      responses: {
        200: z.strictObject({
          status: z.enum(['active', 'not_configured']),
          endpoint: z.url(),
          events: z.array(z.url()),
        }),
      },
      handler: () =>
        reply(200, {
          status: events.isConfigured ? 'active' : 'not_configured',
          endpoint: `${settings.http.webUrl}${PATH}`,
          events: ANNOUNCED_TYPES,
        }),
    }),
  ];
}
