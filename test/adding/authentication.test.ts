import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { credential, header } from '../../api/auth/credential.js';
import { endpoint } from '../../api/http/endpoint.js';
import { reply } from '../../api/http/reply.js';
import { serve, type TestListener } from '../api/http/support.js';

interface PaymentSession {
  readonly sessionId: string;
  readonly userId: string;
}

/** A wallet's client, identified by the payment session that it debits. */
const paymentSession = credential({
  name: 'payment-session',
  shows: { sessionId: header('x-session-id'), walletAddress: header('x-wallet-address') },
  idOf: ({ sessionId }: PaymentSession) => sessionId,
});

const balance = endpoint({
  method: 'GET',
  path: '/api/balance',
  summary: 'Remaining balance',
  tag: 'Payments',
  auth: paymentSession,
  responses: { 200: z.strictObject({ session: z.string(), sees: z.string().optional() }) },
  handler: ({ caller, tenant }) => reply(200, { session: caller.sessionId, sees: tenant.userId }),
});

let listener: TestListener;
beforeAll(async () => {
  listener = await serve([balance], {
    authenticate: [
      paymentSession.with(({ sessionId, walletAddress }) =>
        Promise.resolve(
          sessionId === 's1' && walletAddress === '0xada'
            ? { sessionId, userId: 'ada' }
            : undefined,
        ),
      ),
    ],
  });
});
afterAll(() => listener?.close());

const asked = (headers: Record<string, string>) => listener.call('/api/balance', { headers });

test('a caller with all headers of the credential acts as its user', async () => {
  const answer = await asked({ 'x-session-id': 's1', 'x-wallet-address': '0xada' });
  expect([answer.status, await answer.json()]).toEqual([200, { session: 's1', sees: 'ada' }]);
});

test.each([
  ['nothing', {}],
  ['a part', { 'x-session-id': 's1' }],
  ["another's", { 'x-session-id': 's1', 'x-wallet-address': '0xbob' }],
])('refuses a caller that shows %s of the credential', async (_, headers) => {
  expect((await asked(headers)).status).toBe(401);
});

test('the OpenAPI document requires all headers of the credential', async () => {
  const { components, paths } = z
    .object({
      components: z.object({ securitySchemes: z.unknown() }),
      paths: z.object({ '/api/balance': z.object({ get: z.object({ security: z.unknown() }) }) }),
    })
    .parse(await (await listener.call('/openapi.json')).json());
  expect(paths['/api/balance'].get.security).toEqual([{ sessionId: [], walletAddress: [] }]);
  expect(components.securitySchemes).toEqual({
    sessionId: { type: 'apiKey', in: 'header', name: 'x-session-id' },
    walletAddress: { type: 'apiKey', in: 'header', name: 'x-wallet-address' },
  });
});
