export interface AgentAddress {
  readonly url: string;
  readonly websocketUrl: string;
}

/** Returns the public address of an agent: under `localhost` with its port, elsewhere behind a TLS proxy. */
export function addressOf(
  agent: { readonly subdomain: string; readonly port: number | null },
  domain: string,
): AgentAddress {
  const url = urlOf(`${agent.subdomain}.${domain}`, agent.port, domain);
  return { url, websocketUrl: websocketUrlOf(url) };
}

export const websocketUrlOf = (url: string): string => url.replace(/^http/, 'ws');

function urlOf(host: string, port: number | null, domain: string): string {
  if (domain !== 'localhost') return `https://${host}`;
  return port === null ? `http://${host}` : `http://${host}:${port}`;
}
