export const SESSION_COOKIE = 'service-session';
export const SESSION_SECONDS = 30 * 24 * 60 * 60;

const MAX_TOKEN_LENGTH = 256;

/** The `Set-Cookie` value that signs a browser in. @param secure false only where HTTP is plain. */
export function serializeSessionCookie(token: string, secure: boolean): string {
  return cookie(token, SESSION_SECONDS, secure);
}

/** The `Set-Cookie` value that signs a browser out. */
export function clearSessionCookie(secure: boolean): string {
  return cookie('', 0, secure);
}

function cookie(value: string, maxAge: number, secure: boolean): string {
  // Without a domain: agents are on names below ours, or beside it.
  const attributes = `Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax`;
  return `${SESSION_COOKIE}=${value}; ${attributes}${secure ? '; Secure' : ''}`;
}

/**
 * The session token in a `Cookie` header. Two of them are none: somebody else, such as a neighbouring
 * host, has set one of them.
 */
export function readSessionCookie(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  let found: string | undefined;
  for (const pair of header.split(';')) {
    const separator = pair.indexOf('=');
    if (separator < 0 || pair.slice(0, separator).trim() !== SESSION_COOKIE) continue;
    if (found !== undefined) return undefined;
    found = pair.slice(separator + 1).trim();
  }
  return found !== '' && (found?.length ?? 0) <= MAX_TOKEN_LENGTH ? found : undefined;
}
