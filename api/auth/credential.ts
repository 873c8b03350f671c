import type { IncomingMessage } from 'node:http';
import {
  configurableAuthentication,
  type ConfigurableAuthentication,
  type SecurityScheme,
} from './authentication.js';
import { bearerOf } from './bearer-token.js';

/** Something that a request has to show: where it stands, as OpenAPI says it and as it is read. */
interface Shown {
  readonly scheme: SecurityScheme;
  readonly of: (request: IncomingMessage) => string | undefined;
}

/** The token of `Authorization: Bearer <token>`. */
export const bearerToken = (description: string): Shown => ({
  scheme: { type: 'http', scheme: 'bearer', description },
  of: bearerOf,
});

/** A header of its own, whose name is in lower case. */
export const header = (name: string): Shown => ({
  scheme: { type: 'apiKey', in: 'header', name },
  of({ headers }) {
    const value = headers[name];
    return typeof value === 'string' && value !== '' ? value : undefined;
  },
});

/** Finds what it is that a request shows, by all of it. */
type Finder<Names extends string, Found> = (
  shown: Readonly<Record<Names, string>>,
) => Promise<Found | undefined>;

/** A way by which callers show what a user has given them: they see that user's rows. */
export function credential<
  const Name extends string,
  Names extends string,
  Found extends { readonly userId: string },
>({
  name,
  shows,
  idOf,
}: {
  readonly name: Name;
  readonly shows: Readonly<Record<Names, Shown>>;
  /** What tells one from another; no secret. */
  readonly idOf: (found: Found) => string;
}): ConfigurableAuthentication<Finder<Names, Found>, Found & { readonly kind: Name }> {
  const parts = Object.entries<Shown>(shows);
  return configurableAuthentication({
    name,
    schemes: [Object.fromEntries(parts.map(([part, { scheme }]) => [part, scheme]))],
    // Too many may wait to be looked up.
    errors: [401, 503],
    prepare:
      (find: Finder<Names, Found>) =>
      async ({ request }) => {
        const shown = parts.map(([part, { of }]) => [part, of(request)] as const);
        if (shown.some(([, value]) => value === undefined)) return undefined;
        // Its keys are those of `shows`, and none is undefined.
        const found = await find(Object.fromEntries(shown) as Record<Names, string>);
        if (found === undefined) return undefined;
        return {
          caller: { ...found, kind: name },
          tenant: { userId: found.userId },
          scope: `${name}:${idOf(found)}`,
        };
      },
  });
}
