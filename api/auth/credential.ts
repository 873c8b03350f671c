import type { IncomingMessage } from 'node:http';
import type { KeyScope } from '../../src/types/key-scopes.js';
import {
  configurableAuthentication,
  type ConfigurableAuthentication,
  type SecurityScheme,
} from './authentication.js';
import { bearerOf } from './bearer-token.js';

/** A credential that a request must carry: its OpenAPI scheme and its reader. */
interface CredentialPart {
  readonly scheme: SecurityScheme;
  readonly of: (request: IncomingMessage) => string | undefined;
}

/** The token of `Authorization: Bearer <token>`. */
export const bearerToken = (description: string): CredentialPart => ({
  scheme: { type: 'http', scheme: 'bearer', description },
  of: bearerOf,
});

/** A credential in its own header; the name is in lower case. */
export const header = (name: string): CredentialPart => ({
  scheme: { type: 'apiKey', in: 'header', name },
  of({ headers }) {
    const value = headers[name];
    return typeof value === 'string' && value !== '' ? value : undefined;
  },
});

/** Finds the caller by all credentials of a request. */
type Finder<Names extends string, Found> = (
  shown: Readonly<Record<Names, string>>,
) => Promise<Found | undefined>;

/** Declares authentication by credentials that a user issued; callers see that user's rows. */
export function credential<
  const Name extends string,
  Names extends string,
  Found extends { readonly userId: string },
>({
  name,
  shows,
  idOf,
  scopeOf,
  keyScopesOf,
}: {
  readonly name: Name;
  readonly shows: Readonly<Record<Names, CredentialPart>>;
  /** Identifies the credential in logs; not secret. */
  readonly idOf: (found: Found) => string;
  /** Scope of rate limits and idempotency keys; by default each credential has its own. */
  readonly scopeOf?: (found: Found) => string;
  /** Scopes of an API key; other credentials have none. */
  readonly keyScopesOf?: (found: Found) => readonly KeyScope[];
}): ConfigurableAuthentication<Finder<Names, Found>, Found & { readonly kind: Name }> {
  const parts = Object.entries<CredentialPart>(shows);
  return configurableAuthentication({
    name,
    schemes: [Object.fromEntries(parts.map(([part, { scheme }]) => [part, scheme]))],
    // 503: the queue for lookups is full.
    errors: [401, 503],
    prepare:
      (find: Finder<Names, Found>) =>
      async ({ request }) => {
        const shown = parts.map(([part, { of }]) => [part, of(request)] as const);
        if (shown.some(([, value]) => value === undefined)) return undefined;
        // Safe cast: the keys are those of `shows`, and no value is undefined here.
        const found = await find(Object.fromEntries(shown) as Record<Names, string>);
        if (found === undefined) return undefined;
        const loggedAs = `${name}:${idOf(found)}`;
        return {
          caller: { ...found, kind: name },
          tenant: { userId: found.userId },
          scope: scopeOf?.(found) ?? loggedAs,
          loggedAs,
          keyScopes: keyScopesOf?.(found),
        };
      },
  });
}
