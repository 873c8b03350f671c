import { bridgePrefix } from '../containers/bridge-name.js';
import { NOT_PUBLIC } from '../../platform/outbound/not-public.js';

/** A network that agents may reach although it is not public; with a port, that port of it alone. */
export interface AllowedNetwork {
  /** An address or a network in IPv4, such as `10.1.0.0/16`. */
  readonly network: string;
  readonly port?: number | undefined;
}

/** What agents of one installation may reach beside the public internet. */
export interface EgressPolicy {
  /** Where `host.docker.internal` leads, and the port of the agents' AI listener there. */
  readonly ai: { readonly address: string; readonly port: number };
  /** Name servers that the engine asks for its containers. */
  readonly resolvers: readonly string[];
  readonly allow: readonly AllowedNetwork[];
}

/** One chain, and how packets come to it, as `iptables` has it. */
export interface EgressRules {
  readonly chain: string;
  /** What tells packets that come from the installation's agents. */
  readonly from: readonly string[];
  /** In order, without `-A` and the chain. */
  readonly ipv4: readonly string[];
  readonly ipv6: readonly string[];
}

/** The chain of an installation. */
export function egressChain(installation: string): string {
  return `${bridgePrefix(installation)}-egress`;
}

/**
 * Rules for what comes from the bridges of an installation's agents, before it is routed: so one chain
 * sees what goes through the host and what goes to it, with the address that the agent has asked for.
 * Answers pass to those who asked, and nothing passes because it once did.
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
      // Before networks that are allowed as a whole: the host may be in one of them.
      '-m addrtype --dst-type LOCAL -j DROP',
      ...allow
        .filter(({ port }) => port === undefined)
        .map(({ network }) => `-d ${network} -j RETURN`),
      ...NOT_PUBLIC.map((network) => `-d ${network} -j DROP`),
    ],
    ipv6: ['-j DROP'],
  };
}
