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
  /** Is told of every key that opens nothing. */
  readonly onKeyRefused: (address: string) => void;
}

/** A request that may be handled, and who it is from. */
interface Admitted {
  readonly request: HandlerRequest;
  readonly identity: Identity;
}

/** Lets requests in to their handlers: limits, authentication, body, validation, in this order. */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #bodies: BodyMemory;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#bodies = new BodyMemory(options.server.bounds);
  }

  /** @throws TooManyRequestsError for a request beyond what an address may ask in all. */
  guard(ctx: ArrivalContext, { clientAddress }: Arrival): void {
    heed(this.#options.limiter.guard(clientAddress), ctx);
  }

  /**
   * @param passed what other limits have said of the request.
   * @throws TooManyRequestsError for a request beyond one of the limits.
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

  /** @throws ServiceError by which it is refused. */
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

  /** @throws UnauthorizedError, or what the way to authenticate refuses by. */
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

/** Whose memory it is: all that a user's keys, sessions and agents send is that user's. */
const ownerOf = ({ scope, tenant }: Identity): string =>
  typeof tenant === 'string' ? scope : `user:${tenant.userId}`;

function heed(verdict: Verdict | undefined, ctx: ArrivalContext): void {
  if (verdict === undefined) return;
  ctx.set(verdict.headers);
  if (verdict.refusal !== undefined) throw new TooManyRequestsError(verdict.refusal);
}
