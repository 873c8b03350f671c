import { bridgePrefix } from '../containers/bridge-name.js';
import { NOT_PUBLIC } from '../../platform/outbound/not-public.js';

/** A private network that agents may reach; with a port, only that port. */
export interface AllowedNetwork {
  /** An IPv4 address or network, such as `10.1.0.0/16`. */
  readonly network: string;
  readonly port?: number | undefined;
}

/** Destinations that agents of an installation may reach besides the public internet. */
export interface EgressPolicy {
  /** Address of `host.docker.internal`, and the port of the agents' AI listener there. */
  readonly ai: { readonly address: string; readonly port: number };
  /** Name servers that the engine uses for its containers. */
  readonly resolvers: readonly string[];
  readonly allow: readonly AllowedNetwork[];
}

/** A chain, and the match that sends packets to it, in the syntax of `iptables`. */
export interface EgressRules {
  readonly chain: string;
  /** Match for packets from the installation's agents. */
  readonly from: readonly string[];
  /** Rules in order, without `-A` and the chain. */
  readonly ipv4: readonly string[];
  readonly ipv6: readonly string[];
}

export function egressChain(installation: string): string {
  return `${bridgePrefix(installation)}-egress`;
}

/**
 * Returns the rules for packets from an installation's agents. They apply before routing, so that one chain
 * sees packets through and to the host, with their original destination. Replies pass; other packets pass
 * only by a rule, even on an established connection.
 */
export function egressRules(installation: string, policy: EgressPolicy): EgressRules {
  const { ai, allow, resolvers } = policy;
  const toPort = ({ network, port }: AllowedNetwork) =>
    ['tcp', 'udp'].map((protocol) => `-d ${network} -p ${protocol} --dport ${port} -j RETURN`);
  return {
    chain: egressChain(installation),
    from: ['-i', `${bridgePrefix(installation)}+`],
    ipv4: [
      '-m conntrack --ctstate ESTABLISHED --ctdir REPLY -j RETURN',
      `-d ${ai.address} -p tcp --dport ${ai.port} -j RETURN`,
      ...resolvers.flatMap((network) => toPort({ network, port: 53 })),
      ...allow.filter(({ port }) => port !== undefined).flatMap(toPort),
      // Precedes the allowed networks, because the host may be in one of them.
      '-m addrtype --dst-type LOCAL -j DROP',
      ...allow
        .filter(({ port }) => port === undefined)
        .map(({ network }) => `-d ${network} -j RETURN`),
      ...NOT_PUBLIC.map((network) => `-d ${network} -j DROP`),
    ],
    ipv6: ['-j DROP'],
  };
}
