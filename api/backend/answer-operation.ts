import type { Admitted } from '../../src/agents/lifecycle/agent-operations.js';
import { waitForOperation } from '../../src/agents/operations/operations.js';
import type { TenantDatabase } from '../../src/platform/database/database.js';
import { reply } from '../http/reply.js';

/** Returns the header that names the Temporal run for operators (backend only). */
export function runHeader(run: string | undefined): Record<string, string> {
  return run === undefined ? {} : { 'X-Temporal-Run': run };
}

/** Answers with an operation's state, after waiting for its end as long as the request allows. */
export async function answerOperation(
  request: {
    readonly tenant: TenantDatabase;
    readonly query: { readonly wait: number };
    readonly signal: AbortSignal;
  },
  admitting: Promise<Admitted>,
) {
  const { agent, kind, operationId, run } = await admitting;
  const operation = await waitForOperation(request.tenant, operationId, {
    timeoutMs: request.query.wait * 1_000,
    signal: request.signal,
  });
  return reply(
    202,
    {
      id: agent.id,
      operation: kind,
      operationId,
      status: operation?.status ?? 'requested',
      error: operation?.error ?? null,
    },
    runHeader(run),
  );
}
