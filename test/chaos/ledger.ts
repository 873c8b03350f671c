import { setTimeout as delay } from 'node:timers/promises';
import { idempotencyIdOf } from '../../api/http/endpoint-request.js';
import { operationRules } from '../../src/types/operation-kinds.js';
import type { DesiredState, OperationRow } from '../../src/platform/database/models.js';
import type { ApiRequest } from './operations.js';
import type { Site } from './site.js';
import { unended } from './verdict.js';

/** The longest wait of an eager client, regardless of Retry-After. */
const PAUSE_MS = 300;

/** The scope of the backend's `internal` identity. */
const SCOPE = 'internal';

/** The kind of operation requested, if the answer names no operation. */
const UNNAMED: Readonly<Record<string, OperationRow['kind']>> = {
  PUT: 'configure',
  DELETE: 'delete',
};

/** A request, however often it was sent. */
interface Asked {
  /** The id that the product derives from the idempotency key. */
  readonly id: string;
  readonly agentId: string;
  readonly request: ApiRequest;
  /** The statuses of all answers; 0 means no answer. */
  readonly statuses: Set<number>;
  /** The body of the answer that accepted the request. */
  accepted: { readonly operationId?: string } | undefined;
}

/** All requests of eager clients and their answers. */
export class Ledger {
  readonly #asked = new Map<string, Asked>();

  readonly #api: Site['api'];

  constructor(api: Site['api']) {
    this.#api = api;
  }

  /** Returns the id that an agent gets if it is created with this key. */
  static agentIdOf(key: string): string {
    return idempotencyIdOf(SCOPE, 'POST /api/agents', key);
  }

  /**
   * Sends the same request until it is accepted, refused permanently, or the time is up.
   *
   * @returns true if it was accepted.
   */
  async repeat(agentId: string, request: ApiRequest, key: string, until: number): Promise<boolean> {
    for (;;) {
      const asked = await this.ask(agentId, request, key);
      if (asked.accepted) return true;
      if (performance.now() > until || isFinal([...asked.statuses].at(-1))) return false;
      await delay(PAUSE_MS);
    }
  }

  /** Sends new requests one after another until one is accepted or the time is up. */
  async insist(agentId: string, request: ApiRequest, key: string, until: number): Promise<boolean> {
    for (let number = 0; ; number++) {
      const asked = await this.ask(agentId, request, `${key}-${number}`);
      if (asked.accepted) return true;
      if (performance.now() > until) return false;
      await delay(PAUSE_MS);
    }
  }

  async ask(agentId: string, request: ApiRequest, key: string): Promise<Asked> {
    const { method, path, body } = request;
    const route = `${method} ${path.replace(agentId, ':id')}`;
    const id = idempotencyIdOf(SCOPE, route, key);
    const known = this.#asked.get(id);
    const asked = known ?? { id, agentId, request, statuses: new Set(), accepted: undefined };
    this.#asked.set(id, asked);
    const { status, text } = await this.#api.once(method, path, key, body);
    asked.statuses.delete(status); // keeps the latest status last
    asked.statuses.add(status);
    if (status >= 200 && status < 300) {
      asked.accepted = JSON.parse(text) as { operationId?: string }; // a 202 names its operation
    }
    return asked;
  }

  /** Returns an agent's operations that were accepted but lost, or refused but stored. */
  problemsOf(agentId: string, rows: readonly OperationRow[]): string[] {
    const asked = [...this.#asked.values()].filter((each) => each.agentId === agentId);
    const ids = new Set(asked.map(({ id }) => id));
    const found = new Map(rows.map((row) => [row.id, row]));
    return [
      ...asked.flatMap((each) => problemsOfRequest(each, rows, found)),
      ...rows.flatMap((row) => unended(row, ['succeeded', 'failed', 'cancelled'])),
      ...rows
        .filter((row) => !ids.has(row.id) && row.kind !== 'provision' && !isTakenUp(row, rows))
        .map(({ id, kind }) => `operation ${kind} (${id}) was asked for by nobody`),
    ];
  }

  /** Reports whether a client received a success for the agent's creation. */
  isPromised(agentId: string): boolean {
    return this.#asked.get(agentId)?.accepted !== undefined;
  }

  /** Returns operations of refused requests, which must not be in the audit log. */
  refusedIds(): string[] {
    return [...this.#asked.values()].filter(isRefused).map(({ id }) => id);
  }

  /** Counts the requests that were accepted, refused, or have no certain answer. */
  counts(): { accepted: number; refused: number; unsure: number } {
    const all = [...this.#asked.values()];
    const accepted = all.filter((each) => each.accepted).length;
    const refused = all.filter(isRefused).length;
    return { accepted, refused, unsure: all.length - accepted - refused };
  }
}

/** Returns an agent's desired state after these operations. */
export function desiredBy(rows: readonly OperationRow[]): DesiredState {
  if (rows.some(({ kind }) => kind === 'delete')) return 'deleted';
  const begun = rows.filter(({ runId }) => runId !== null);
  const inOrder = begun.toSorted((a, b) => endOf(a) - endOf(b));
  const wants = inOrder.flatMap(({ kind }) => operationRules(kind).desired ?? []);
  return wants.at(-1) ?? 'running';
}

const endOf = ({ finishedAt }: OperationRow): number => finishedAt?.getTime() ?? Infinity;

/** Reports whether the platform itself started this deletion because a requested one did not finish. */
const isTakenUp = ({ kind, requestedBy }: OperationRow, rows: readonly OperationRow[]): boolean =>
  kind === 'delete' &&
  requestedBy === null &&
  rows.some((row) => row.kind === 'delete' && ['failed', 'cancelled'].includes(row.status));

/** Client errors: a retry changes nothing. */
const isFinal = (status = 0): boolean =>
  status >= 400 && status < 500 && status !== 409 && status !== 429;

/** Reports whether every answer was a refusal, so that the request cannot have been carried out. */
function isRefused({ accepted, statuses }: Asked): boolean {
  return !accepted && [...statuses].every((status) => status >= 400 && status < 500);
}

function problemsOfRequest(
  asked: Asked,
  rows: readonly OperationRow[],
  found: ReadonlyMap<string, OperationRow>,
): string[] {
  const { accepted, id, request } = asked;
  const what = `${request.method} ${request.path.split('/').at(-1)}`;
  if (isRefused(asked) && found.has(id)) {
    return [`${what} was refused (${[...asked.statuses].join()}) and is there: ${id}`];
  }
  if (!accepted) return [];
  if (request.path === '/api/agents') return [];
  const { operationId } = accepted;
  if (operationId !== undefined) {
    return found.has(operationId) ? [] : [`${what} was accepted and is lost: ${operationId}`];
  }
  // A request joined to an operation in flight has no row of its own.
  const kind = UNNAMED[request.method];
  return rows.some((row) => row.kind === kind) ? [] : [`${what} was accepted and is lost: ${id}`];
}
