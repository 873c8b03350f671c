/** Where an agent is reached from outside its container. */
export interface AgentAddress {
  readonly url: string;
  readonly websocketUrl: string;
}

/**
 * The public address of an agent. Names under `localhost` lead to this machine, so there the port
 * is part of it; under any other domain a proxy in front ends TLS and knows the port.
 */
export function addressOf(
  agent: { readonly subdomain: string; readonly port: number | null },
  domain: string,
): AgentAddress {
  const url = urlOf(`${agent.subdomain}.${domain}`, agent.port, domain);
  return { url, websocketUrl: websocketUrlOf(url) };
}

/** An agent's WebSocket is where its pages are. */
export const websocketUrlOf = (url: string): string => url.replace(/^http/, 'ws');

function urlOf(host: string, port: number | null, domain: string): string {
  if (domain !== 'localhost') return `https://${host}`;
  return port === null ? `http://${host}` : `http://${host}:${port}`;
}
