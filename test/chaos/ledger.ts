import { setTimeout as delay } from 'node:timers/promises';
import { idempotencyIdOf } from '../../api/http/endpoint-request.js';
import { operationRules } from '../../src/types/operation-kinds.js';
import type { DesiredState, OperationRow } from '../../src/platform/database/models.js';
import type { ApiRequest } from './operations.js';
import type { Site } from './site.js';
import { unended } from './verdict.js';

/** An eager client waits no longer than this, whatever an answer's Retry-After says. */
const PAUSE_MS = 300;

/** As the backend's `internal` identity has it. */
const SCOPE = 'internal';

/** What is asked for where the answer names no operation. */
const UNNAMED: Readonly<Record<string, OperationRow['kind']>> = {
  PUT: 'configure',
  DELETE: 'delete',
};

/** One request, however often it was sent. */
interface Asked {
  /** What the product makes of its key. */
  readonly id: string;
  readonly agentId: string;
  readonly request: ApiRequest;
  /** Of every answer; 0 stands for none. */
  readonly statuses: Set<number>;
  /** What the answer that accepted it says. */
  accepted: { readonly operationId?: string } | undefined;
}

/** Everything that eager clients have asked for, and what they were told. */
export class Ledger {
  readonly #asked = new Map<string, Asked>();

  readonly #api: Site['api'];

  constructor(api: Site['api']) {
    this.#api = api;
  }

  /** The id that an agent gets when it is asked for with this key. */
  static agentIdOf(key: string): string {
    return idempotencyIdOf(SCOPE, 'POST /api/agents', key);
  }

  /**
   * Sends the same request over and over until it is accepted, refused for good, or the time is up.
   *
   * @returns whether it was accepted.
   */
  async repeat(agentId: string, request: ApiRequest, key: string, until: number): Promise<boolean> {
    for (;;) {
      const asked = await this.ask(agentId, request, key);
      if (asked.accepted) return true;
      if (performance.now() > until || isFinal([...asked.statuses].at(-1))) return false;
      await delay(PAUSE_MS);
    }
  }

  /** Sends new requests, one after the other, until one is accepted or the time is up. */
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
    asked.statuses.delete(status); // the last one stands last
    asked.statuses.add(status);
    if (status >= 200 && status < 300) {
      asked.accepted = JSON.parse(text) as { operationId?: string }; // 202 names its operation
    }
    return asked;
  }

  /** What was accepted and is lost, or was refused and is there, of the operations of an agent. */
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

  /** Whether somebody was told that there will be this agent. */
  isPromised(agentId: string): boolean {
    return this.#asked.get(agentId)?.accepted !== undefined;
  }

  /** Operations of requests that were refused, of which the audit log must not know. */
  refusedIds(): string[] {
    return [...this.#asked.values()].filter(isRefused).map(({ id }) => id);
  }

  /** Requests to an agent that were accepted, refused, and not answered for certain. */
  counts(): { accepted: number; refused: number; unsure: number } {
    const all = [...this.#asked.values()];
    const accepted = all.filter((each) => each.accepted).length;
    const refused = all.filter(isRefused).length;
    return { accepted, refused, unsure: all.length - accepted - refused };
  }
}

/** What is wanted of an agent after these operations of it. */
export function desiredBy(rows: readonly OperationRow[]): DesiredState {
  if (rows.some(({ kind }) => kind === 'delete')) return 'deleted';
  const begun = rows.filter(({ runId }) => runId !== null);
  const inOrder = begun.toSorted((a, b) => endOf(a) - endOf(b));
  const wants = inOrder.flatMap(({ kind }) => operationRules(kind).desired ?? []);
  return wants.at(-1) ?? 'running';
}

const endOf = ({ finishedAt }: OperationRow): number => finishedAt?.getTime() ?? Infinity;

/** A deletion that the platform itself has begun anew, because one that was asked for did not come to its end. */
const isTakenUp = ({ kind, requestedBy }: OperationRow, rows: readonly OperationRow[]): boolean =>
  kind === 'delete' &&
  requestedBy === null &&
  rows.some((row) => row.kind === 'delete' && ['failed', 'cancelled'].includes(row.status));

/** The caller's own fault: asking again changes nothing. */
const isFinal = (status = 0): boolean =>
  status >= 400 && status < 500 && status !== 409 && status !== 429;

/** Every answer said so, and none that it may have been done all the same. */
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
  // Joined to one that was under way, it has no row of its own.
  const kind = UNNAMED[request.method];
  return rows.some((row) => row.kind === kind) ? [] : [`${what} was accepted and is lost: ${id}`];
}
