export interface AgentAddress {
  readonly url: string | null;
  readonly websocketUrl: string | null;
}

/** The place at which agents are served, from the settings. */
export interface AgentsAt {
  readonly domain: string;
  readonly scheme: 'http' | 'https';
  readonly port: number | undefined;
}

/** Returns the public address of an agent. */
export function addressOf(
  { subdomain }: { readonly subdomain: string },
  at: AgentsAt | undefined,
): AgentAddress {
  if (at === undefined) return { url: null, websocketUrl: null };
  const port = at.port === undefined ? '' : `:${at.port}`;
  const url = `${at.scheme}://${subdomain}.${at.domain}${port}`;
  return { url, websocketUrl: websocketUrlOf(url) };
}

/** Returns the first label of a host name below the domain of agents; undefined for any other name. */
export function subdomainIn(domain: string, host: string): string | undefined {
  const name = host.toLowerCase();
  const suffix = `.${domain}`;
  if (!name.endsWith(suffix)) return undefined;
  const label = name.slice(0, -suffix.length);
  return /^[a-z0-9-]{1,63}$/.test(label) ? label : undefined;
}

export const websocketUrlOf = (url: string | null): string | null =>
  url === null ? null : url.replace(/^http/, 'ws');
