/** The address of an agent outside its container. */
export interface AgentAddress {
  readonly url: string;
  readonly websocketUrl: string;
}

/**
 * Returns the public address of an agent. Under `localhost` names resolve to this machine, so the URL
 * includes the port; under any other domain a proxy terminates TLS and maps the port.
 */
export function addressOf(
  agent: { readonly subdomain: string; readonly port: number | null },
  domain: string,
): AgentAddress {
  const url = urlOf(`${agent.subdomain}.${domain}`, agent.port, domain);
  return { url, websocketUrl: websocketUrlOf(url) };
}

/** Returns the address of an agent's WebSocket, on the same host and path as its pages. */
export const websocketUrlOf = (url: string): string => url.replace(/^http/, 'ws');

function urlOf(host: string, port: number | null, domain: string): string {
  if (domain !== 'localhost') return `https://${host}`;
  return port === null ? `http://${host}` : `http://${host}:${port}`;
}
