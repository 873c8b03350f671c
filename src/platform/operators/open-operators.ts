import {
  serveOperators,
  type OperatorsListenerParts,
  type OperatorsListening,
} from './operators-listener.js';

interface OperatorsParts extends Pick<
  OperatorsListenerParts,
  'log' | 'metrics' | 'readiness' | 'variable'
> {
  readonly settings: {
    readonly http: { readonly ownNames: ReadonlySet<string> };
    /** Not given by a process on a network that agents do not reach. */
    readonly agents?: { readonly subnetPool: string };
  };
  readonly listen: { readonly address: string; readonly port: number };
}

/** Opens the operators' address of a process, at which no agent is answered. */
export function openOperators({
  listen,
  settings: { agents, http },
  ...parts
}: OperatorsParts): Promise<OperatorsListening> {
  return serveOperators({
    ...parts,
    host: listen.address,
    port: listen.port,
    names: http.ownNames,
    refuseFrom: agents ? [agents.subnetPool] : [],
  });
}
