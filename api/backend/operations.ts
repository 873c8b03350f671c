import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { CredentialChange } from '../../src/agents/agent-credentials.js';
import { findAgent, getAgent } from '../../src/agents/agents.js';
import type { OperationKind } from '../../src/agents/operation-rules.js';
import {
  findOperation,
  listOperations,
  requestOperation,
  waitForOperation,
  withdrawOperation,
} from '../../src/agents/operations.js';
import { listTransitions } from '../../src/agents/watchdog-transitions.js';
import { recordAudit } from '../../src/audit/audit.js';
import type { TenantDatabase } from '../../src/database/database.js';
import type { AgentRow, OperationInput } from '../../src/database/models.js';
import { ConflictError, ServiceError, UnavailableError } from '../../src/errors.js';
import type { InternalCaller } from '../auth/internal-key.js';
import { internalKey } from '../auth/internal-key.js';
import { endpoint } from '../http/endpoint.js';
import {
  operationAnswer,
  operationList,
  presentOperation,
  waitQuery,
} from '../views/operations.js';
import { reply } from '../http/reply.js';
import { presentTransition } from '../views/watchdog.js';
import type { RequestedOperation } from '../../src/agents/supervisors.js';
import { supervisedOf } from '../../src/agents/supervisors.js';
import { agentIdParams } from '../views/backend-agents.js';
import type { BackendDependencies } from './dependencies.js';
import { actorOf } from './requested-by.js';

/** What a request for an operation says about itself. */
export interface OperationContext {
  readonly tenant: TenantDatabase;
  readonly caller: InternalCaller;
  readonly requestId: string;
  readonly idempotencyId: string;
}

/** Header that leads an operator to the run (on the backend only). */
export function runHeader(run: string | undefined): Record<string, string> {
  return run === undefined ? {} : { 'X-Temporal-Run': run };
}

/**
 * Writes an operation down, then tells the agent's supervisor. What a supervisor refuses, or has
 * under way already, is taken back.
 *
 * @throws ConflictError while another operation runs
 * @throws UnavailableError when Temporal cannot be reached
 */
export async function operate(
  { supervisors }: Pick<BackendDependencies, 'supervisors'>,
  context: OperationContext,
  agent: AgentRow,
  kind: Exclude<OperationKind, 'provision'>,
  input?: OperationInput,
  credential?: CredentialChange,
): Promise<RequestedOperation> {
  const { tenant, idempotencyId: id } = context;
  const requestedAt = await requestOperation(tenant, agent, { id, kind, input, credential });
  try {
    const requested = await supervisors.request(supervisedOf(agent), kind, id, requestedAt);
    if (requested.operationId !== id) {
      await withdrawOperation(tenant, id);
      const running = await findOperation(tenant, requested.operationId);
      // The same kind of operation is the same one only when it brings the same.
      if (!isDeepStrictEqual(running?.input ?? null, asStored(input))) {
        throw new ConflictError(`Another operation is running: ${kind}`);
      }
    }
    await recordAudit(tenant, {
      actor: actorOf(context.caller),
      userId: agent.userId,
      action: `agent.${kind}`,
      subject: agent.id,
      detail: { operationId: requested.operationId, ...changed(input) },
      requestId: context.requestId,
    });
    return requested;
  } catch (error) {
    // Not heard is not the same as not happened: it is taken back only if it has not begun, and a
    // removal never is.
    if (kind !== 'delete') await withdrawOperation(tenant, id);
    throw error;
  }
}

/** Asks for an operation and answers how far it is, after as long as the request wants to wait. */
export async function answerOperation(
  dependencies: BackendDependencies,
  request: OperationContext & { readonly query: { wait: number }; readonly signal: AbortSignal },
  agent: AgentRow,
  kind: Exclude<OperationKind, 'provision'>,
  input?: OperationInput,
  credential?: CredentialChange,
) {
  const { query, signal, tenant } = request;
  const { operationId, run } = await operate(dependencies, request, agent, kind, input, credential);
  const operation = await waitForOperation(tenant, operationId, {
    timeoutMs: query.wait * 1_000,
    signal,
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

/** What the audit log names of a change: never what it is changed to. */
function changed({ skill, credential }: OperationInput = {}): Record<string, string> {
  return {
    ...(skill && { skill: skill.name }),
    ...(credential && { credential: credential.name }),
  };
}

/** What comes back from the database for it. */
function asStored(input: OperationInput | undefined): unknown {
  return input === undefined ? null : JSON.parse(JSON.stringify(input));
}

/** What is done to an agent without saying more, and the history of all operations. */
export function operationEndpoints(dependencies: BackendDependencies) {
  const lifecycle = (
    kind: 'start' | 'stop' | 'restart' | 'repair' | 'reset-memory',
    summary: string,
  ) =>
    endpoint({
      method: 'POST',
      path: `/api/agents/:id/${kind}`,
      summary,
      tag: 'Agents',
      auth: internalKey,
      idempotent: true,
      params: agentIdParams,
      query: waitQuery,
      responses: { 202: operationAnswer },
      errors: [404, 409, 503],
      async handler(request) {
        await requireContainers(dependencies);
        const agent = await getAgent(request.tenant, request.params.id);
        return answerOperation(dependencies, request, agent, kind);
      },
    });

  return [
    lifecycle('start', 'Start an agent'),
    lifecycle('stop', 'Stop an agent'),
    lifecycle('restart', 'Restart an agent'),
    lifecycle(
      'repair',
      'Repair an agent: kill its gateway, start it again, verify that it is well',
    ),
    lifecycle('reset-memory', 'Archive the memory of an agent, and give it an empty one'),
    endpoint({
      method: 'GET',
      path: '/api/agents/:id/operations',
      summary: 'What was done to an agent, newest first',
      tag: 'Agents',
      auth: internalKey,
      params: agentIdParams,
      query: z.object({ limit: z.coerce.number().int().min(1).max(200).default(50) }),
      responses: { 200: operationList },
      errors: [404],
      async handler({ params, query, tenant }) {
        const agent = await getAgent(tenant, params.id);
        const operations = await listOperations(tenant, agent.id, query.limit);
        const transitions = await listTransitions(tenant, agent.id, query.limit);
        return reply(200, {
          operations: operations.map(presentOperation),
          transitions: transitions.map(presentTransition),
        });
      },
    }),
  ];
}

/**
 * Asks for the removal of an agent, whatever it is doing. An agent that is not there, or not any
 * more, is removed already. Once written down it will happen, also when Temporal is out.
 */
export async function removeAgent(
  dependencies: BackendDependencies,
  context: OperationContext,
  agentId: string,
): Promise<Partial<RequestedOperation>> {
  const agent = await findAgent(context.tenant, agentId);
  if (!agent) return {};
  try {
    return await operate(dependencies, context, agent, 'delete');
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    dependencies.log.warn({ agentId }, 'removal waits for Temporal');
    return {};
  }
}

/** Spec 4.11: without a Docker daemon, what depends on containers answers 500. */
export async function requireContainers({ containers }: BackendDependencies): Promise<void> {
  if (!(await containers.available())) throw new ServiceError(500, 'Docker is not available');
}
