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
  const host = `${agent.subdomain}.${domain}`;
  if (domain !== 'localhost') return { url: `https://${host}`, websocketUrl: `wss://${host}` };
  const authority = agent.port === null ? host : `${host}:${agent.port}`;
  return { url: `http://${authority}`, websocketUrl: `ws://${authority}` };
}
