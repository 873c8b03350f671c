import { ForbiddenError, TooManyRequestsError, UnauthorizedError } from '../../src/lib/errors.js';
import type { Database } from '../../src/platform/database/database.js';
import type { AuthenticationRequest, Identity } from '../auth/authentication.js';
import { bearerOf } from '../auth/bearer-token.js';
import type { Arrival, ArrivalContext } from './arrival.js';
import { BodyMemory } from './body-memory.js';
import type { Plan } from './endpoint-plan.js';
import { HandlerRequest } from './endpoint-request.js';
import { tighterOf, type Limiter, type Verdict } from './limiter.js';
import type { RateLimit } from './rate-limit.js';
import { readBody } from './read-body.js';
import type { Server } from './server.js';

export interface AdmissionOptions {
  readonly limiter: Limiter;
  readonly database: Database | undefined;
  readonly server: Server;
  /** Called for every invalid key. */
  readonly onKeyRefused: (address: string) => void;
}

/** An admitted request, and its caller. */
interface Admitted {
  readonly request: HandlerRequest;
  readonly identity: Identity;
}

/** Admits requests to their handlers: checks limits, authentication, body and validation, in this order. */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #bodies: BodyMemory;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#bodies = new BodyMemory(options.server.bounds);
  }

  /**
   * Applies the overall limit of the client's address.
   *
   * @throws TooManyRequestsError over the limit.
   */
  guard(ctx: ArrivalContext, { clientAddress }: Arrival): void {
    heed(this.#options.limiter.guard(clientAddress), ctx);
  }

  /**
   * Counts a request in the limits.
   *
   * @param passed the verdict of limits that were checked before.
   * @throws TooManyRequestsError if the request exceeds a limit.
   */
  async count(
    limits: readonly RateLimit[],
    ctx: ArrivalContext,
    client: string,
    passed?: Verdict,
  ): Promise<Verdict | undefined> {
    const verdict = await this.#options.limiter.check(limits, client);
    heed(verdict && tighterOf(passed, verdict), ctx);
    return verdict;
  }

  /**
   * Authenticates and validates a request.
   *
   * @throws ServiceError if the request is rejected.
   */
  async admit(plan: Plan, ctx: ArrivalContext, arrival: Arrival): Promise<Admitted> {
    const { clientAddress, requestId, search } = arrival;
    const { bodyFormat, endpoint } = plan;
    this.guard(ctx, arrival);
    const ofAddress =
      plan.limits.length > 0 ? await this.count(plan.limits, ctx, clientAddress) : undefined;
    const incoming = ctx.req;
    const provedByBody = endpoint.auth.proof === 'body';
    const read = (isAnonymous: boolean, owner: string) =>
      this.#readBody(plan, ctx, isAnonymous, owner);
    const proof = provedByBody ? await read(false, clientAddress) : undefined;
    const shown = { request: incoming, clientAddress, body: proof };
    const identity = await this.#authenticate(plan, shown);
    arrival.caller = identity.scope;
    if (plan.limitsOfCaller.length > 0 && identity.tenant !== 'platform') {
      await this.count(plan.limitsOfCaller, ctx, identity.scope, ofAddress);
    }
    const bytes = provedByBody
      ? proof
      : await read(identity.caller.kind === 'anonymous', ownerOf(identity));

    const params = plan.readParams(ctx.params);
    const query = plan.readQuery(search);
    const headers = plan.readHeaders(incoming.headers);
    const type = incoming.headers['content-type'] ?? '';
    const body = bodyFormat && (await bodyFormat.read(bytes, type));
    const request = new HandlerRequest({
      endpoint,
      incoming,
      response: ctx.res,
      database: this.#options.database,
      params,
      query,
      headers,
      body,
      identity,
      requestId,
      clientAddress,
    });
    return { request, identity };
  }

  #readBody({ bodyFormat }: Plan, ctx: ArrivalContext, isAnonymous: boolean, owner: string) {
    const { paceBytes, paceMs } = this.#options.server.bounds;
    const makeRoom = this.#bodies.roomFor(owner, ctx.res);
    return readBody(ctx.req, bodyFormat, { isAnonymous, paceBytes, paceMs, makeRoom });
  }

  /**
   * Identifies the caller.
   *
   * @throws UnauthorizedError, or the error of the authentication method.
   */
  async #authenticate(plan: Plan, shown: AuthenticationRequest): Promise<Identity> {
    try {
      const found = plan.authenticate(shown);
      const identity = found instanceof Promise ? await found : found;
      if (identity === undefined) throw new UnauthorizedError();
      return identity;
    } catch (error) {
      const isAnswer = error instanceof UnauthorizedError || error instanceof ForbiddenError;
      const hasKey = bearerOf(shown.request) !== undefined;
      if (isAnswer && hasKey) this.#options.onKeyRefused(shown.clientAddress);
      throw error;
    }
  }
}

/** The owner that body memory is charged to: one user's keys, sessions and agents share an owner. */
const ownerOf = ({ scope, tenant }: Identity): string =>
  typeof tenant === 'string' ? scope : `user:${tenant.userId}`;

function heed(verdict: Verdict | undefined, ctx: ArrivalContext): void {
  if (verdict === undefined) return;
  ctx.set(verdict.headers);
  if (verdict.refusal !== undefined) throw new TooManyRequestsError(verdict.refusal);
}
