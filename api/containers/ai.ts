import { Readable } from 'node:stream';
import { z } from 'zod';
import { AGENT_MODEL } from '../../src/agents/agent-specs.js';
import { getAgent } from '../../src/agents/agents.js';
import { forwardCompletion } from '../../src/ai/forward.js';
import { configuredProvider, providerModel } from '../../src/ai/provider.js';
import type { Config } from '../../src/config.js';
import { endpoint } from '../http/endpoint.js';
import { reply, streamReply } from '../http/reply.js';

const completion = z.looseObject({
  model: z.string().max(200).optional(),
  messages: z.array(z.unknown()).min(1),
});

/** The OpenAI-compatible endpoints for agents (decision 22): they hold no provider key. */
export function agentAiEndpoints(config: Config) {
  return [
    endpoint({
      method: 'POST',
      path: '/v1/chat/completions',
      summary: 'Chat completion by the configured provider',
      tag: 'AI',
      auth: 'agent',
      body: completion,
      responses: { 200: 'stream' },
      errors: [404, 429, 502, 503],
      async handler({ body, caller, signal, tenant }) {
        const agent = await getAgent(tenant, caller.agentId);
        const provider = configuredProvider(config);
        const answer = await forwardCompletion(
          provider,
          { ...body, model: providerModel(provider.name, agent) },
          signal,
        );
        const type = answer.headers.get('content-type') ?? 'application/json';
        return streamReply(200, Readable.fromWeb(bodyOf(answer)), type);
      },
    }),
    endpoint({
      method: 'GET',
      path: '/v1/models',
      summary: 'The one model that agents name',
      tag: 'AI',
      auth: 'agent',
      responses: {
        200: z.strictObject({
          object: z.literal('list'),
          data: z.array(
            z.strictObject({
              id: z.string(),
              object: z.literal('model'),
              created: z.number(),
              owned_by: z.string(),
            }),
          ),
        }),
      },
      handler: () =>
        reply(200, {
          object: 'list' as const,
          data: [{ id: AGENT_MODEL, object: 'model' as const, created: 0, owned_by: 'platform' }],
        }),
    }),
  ];
}

function bodyOf(response: Response) {
  if (!response.body) throw new TypeError('a forwarded answer always has a body');
  return response.body;
}
