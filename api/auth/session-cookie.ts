export const SESSION_COOKIE = 'service-session';
export const SESSION_SECONDS = 30 * 24 * 60 * 60;

const MAX_TOKEN_LENGTH = 256;

/** Returns the `Set-Cookie` value that signs a browser in. @param secure false only for plain HTTP. */
export function serializeSessionCookie(token: string, secure: boolean): string {
  return cookie(token, SESSION_SECONDS, secure);
}

export function clearSessionCookie(secure: boolean): string {
  return cookie('', 0, secure);
}

function cookie(value: string, maxAge: number, secure: boolean): string {
  // No `Domain`: agents are served on subdomains and sibling hosts.
  const attributes = `Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax`;
  return `${SESSION_COOKIE}=${value}; ${attributes}${secure ? '; Secure' : ''}`;
}

/** Returns a header's session token. Two count as none: another party, such as a sibling host, set one. */
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
