import type * as z from 'zod';
import type { Authentication, Caller } from '../auth/authentication.js';
import type {
  BodySchema,
  Declaration,
  Endpoint,
  Handler,
  None,
  Responses,
  TypedDeclaration,
} from './endpoint.js';

interface Shared<C extends Caller, P extends z.ZodType> extends Pick<
  Declaration,
  | 'tag'
  | 'keyScope'
  | 'answerHeaders'
  | 'errors'
  | 'limit'
  | 'limitOfCaller'
  | 'atOnce'
  | 'errorForm'
> {
  readonly auth: Authentication<C>;
  readonly params?: P;
}

/** The properties of a single endpoint; its errors are added to the area's. */
type Own<
  C extends Caller,
  R extends Responses,
  P extends z.ZodType,
  Q extends z.ZodType,
  H extends z.ZodType,
  B extends BodySchema,
> = Omit<TypedDeclaration<C, R, P, Q, H, B>, 'tag' | 'auth'> & {
  readonly auth?: Authentication<C>;
};

interface Area<AreaCaller extends Caller, AreaParams extends z.ZodType> {
  <
    const R extends Responses,
    C extends Caller = AreaCaller,
    P extends z.ZodType = AreaParams,
    Q extends z.ZodType = None,
    H extends z.ZodType = None,
    B extends BodySchema = None,
  >(
    own: Own<C, R, P, Q, H, B> & { readonly handler: Handler<C, R, P, Q, H, B> },
  ): Endpoint;
  /** Declares an endpoint without its handler, which can also be used to call the endpoint. */
  declare<
    const R extends Responses,
    C extends Caller = AreaCaller,
    P extends z.ZodType = AreaParams,
    Q extends z.ZodType = None,
    H extends z.ZodType = None,
    B extends BodySchema = None,
  >(
    own: Own<C, R, P, Q, H, B>,
  ): TypedDeclaration<C, R, P, Q, H, B> & {
    handledBy(handler: Handler<C, R, P, Q, H, B>): Endpoint;
  };
}

type AnyOwn = Omit<Declaration, 'tag' | 'auth'> & Partial<Pick<Declaration, 'auth'>>;

/** Creates an area of endpoints, which declare only their differences from it. */
export function area<C extends Caller, P extends z.ZodType = None>(
  shared: Shared<C, P>,
): Area<C, P> {
  const complete = (own: AnyOwn): Declaration => ({
    ...shared,
    ...own,
    errors: [...(shared.errors ?? []), ...(own.errors ?? [])],
  });
  const declare = (own: AnyOwn) => {
    const declared = complete(own);
    return {
      ...declared,
      handledBy: (handler: Endpoint['handler']): Endpoint => ({ ...declared, handler }),
    };
  };
  const area = ({ handler, ...own }: AnyOwn & Pick<Endpoint, 'handler'>): Endpoint => ({
    ...complete(own),
    handler,
  });
  // Safe cast: handlers of different declarations differ only in their types.
  return Object.assign(area, { declare }) as unknown as Area<C, P>;
}
