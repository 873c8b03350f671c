import * as z from 'zod';
import type { SignInProvider } from '../../src/accounts/accounts/sign-in-provider.js';
import type { ProviderKind } from '../../src/types/sign-in-methods.js';
import { BadGatewayError, UnavailableError } from '../../src/lib/errors.js';
import { upperFirst } from '../../src/lib/upper-first.js';
import { anonymous } from '../auth/anonymous.js';
import { freshSession } from '../auth/fresh-session.js';
import { optionalSession } from '../auth/optional-session.js';
import { area } from '../http/area.js';
import { redirect, reply } from '../http/reply.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';
import { answerQuery, ProviderSignIn, toLogin } from './provider-sign-in.js';
import { signInHeaders } from './sign-in-place.js';

const accounts = area({ tag: 'Accounts', auth: anonymous, limit: LIMITS.signIn });

const flowHeaders = z.object({ cookie: z.string().optional() });

/** Creates the endpoints for sign-in at providers, and for linking to them (spec 4.1). */
export function providerEndpoints(dependencies: WebDependencies) {
  const { providers } = dependencies;
  return [
    ...endpointsOf('google', 'Idp', providers.google, dependencies),
    ...endpointsOf('github', 'Codehost', providers.github, dependencies),
  ];
}

/** Creates the endpoints of one provider. @param prefix the prefix of the error codes shown to people. */
function endpointsOf(
  kind: ProviderKind,
  prefix: 'Idp' | 'Codehost',
  provider: SignInProvider | undefined,
  dependencies: WebDependencies,
) {
  const signIn = provider && new ProviderSignIn(kind, prefix, provider, dependencies);
  const idName = upperFirst(kind);
  return [
    accounts({
      method: 'GET',
      path: `/api/auth/${kind}`,
      operationId: `start${idName}SignIn`,
      summary: `Sign in at the ${NAMES[kind]}: redirects the browser there`,
      headers: flowHeaders,
      responses: { 302: 'redirect' },
      async handler(request) {
        if (signIn === undefined) return toLogin(prefix, 'NotConfigured');
        const begun = await signIn.begin(request);
        if (begun === undefined) return toLogin(prefix, 'AuthError');
        return redirect(302, begun.location, { 'Set-Cookie': begun.cookies });
      },
    }),
    accounts({
      method: 'GET',
      path: `/api/auth/${kind}/callback`,
      operationId: `finish${idName}SignIn`,
      summary: `Return from the ${NAMES[kind]}: signs in or links, then redirects the browser`,
      auth: optionalSession,
      headers: signInHeaders,
      query: answerQuery,
      responses: { 302: 'redirect' },
      handler: async (request) =>
        signIn === undefined ? toLogin(prefix, 'NotConfigured') : signIn.end(request),
    }),
    accounts({
      method: 'POST',
      path: `/api/settings/identities/${kind}`,
      operationId: `link${idName}`,
      summary: `Get the URL at which to link your account at the ${NAMES[kind]}`,
      auth: freshSession,
      headers: flowHeaders,
      responses: { 200: z.strictObject({ url: z.string() }) },
      errors: [502, 503],
      async handler(request) {
        if (signIn === undefined) throw new UnavailableError(`No ${NAMES[kind]} is configured`);
        const { sessionId, user } = request.caller;
        const begun = await signIn.begin(request, { userId: user.id, sessionId });
        if (begun === undefined)
          throw new BadGatewayError(`The ${NAMES[kind]} does not answer: retry later`);
        return reply(200, { url: begun.location }, { 'Set-Cookie': begun.cookies });
      },
    }),
  ];
}

const NAMES: Readonly<Record<ProviderKind, string>> = {
  google: 'identity provider',
  github: 'code host',
};
