import { hostname } from 'node:os';
import { plainFault, switchedAddress } from '../../platform/environment/address.js';
import { area, variable } from '../../platform/environment/area.js';
import { inUrl } from '../../platform/http/own-hosts.js';
import {
  boolean,
  entriesOf,
  listenAddress,
  splitListenAddress,
  textAs,
} from '../../platform/environment/types.js';

const WORKER_ROLES = ['workflows', 'host'] as const;

export type WorkerRole = (typeof WORKER_ROLES)[number];

const workerRoles = textAs(
  `one or both of ${WORKER_ROLES.join(', ')}, separated by commas`,
  (value): ReadonlySet<WorkerRole> | undefined => {
    const names = new Set(entriesOf(value));
    const roles = new Set(WORKER_ROLES.filter((role) => names.delete(role)));
    return roles.size > 0 && names.size === 0 ? roles : undefined;
  },
);

export const hostSettings = area(
  'Docker hosts',
  () => ({
    workerRoles: variable(
      'WORKER_ROLES',
      workerRoles.prefault(WORKER_ROLES.join()),
      'the tasks of a worker: `workflows` runs workflows and starts due work, without Docker; `host` operates the Docker host beside it',
    ),
    listen: variable(
      'HOST_LISTEN',
      listenAddress.optional(),
      "address a worker listens on to serve its host's chat, logs, statistics and files to API processes elsewhere",
      { whenUnset: 'not at all' },
    ),
    url: variable(
      'HOST_URL',
      switchedAddress('http', 'https').optional(),
      'address at which those processes reach the worker',
      {
        whenUnset: 'from `HOST_LISTEN`',
      },
    ),
    tls: variable(
      'HOST_TLS',
      boolean.prefault('true'),
      '`false`: in production `HOST_URL` may be `http` beyond this machine, because nobody else reaches that network',
    ),
  }),
  ({ listen, url, workerRoles: roles }) => ({
    workerRoles: roles,
    listener: listen === undefined ? undefined : listenerOf(listen, url),
  }),
  (values, mode) => {
    const { listen, tls, url } = values;
    if (listen === undefined || !tls || !mode.production) return [];
    const fault = plainFault(listenerOf(listen, url).url, mode);
    return fault === undefined
      ? []
      : [`HOST_URL ${fault}; or set HOST_TLS=false where nobody else reaches the worker`];
  },
);

function listenerOf(listen: string, url: string | undefined) {
  const { address, port } = splitListenAddress(listen);
  // A wildcard address cannot be called: other machines use this machine's host name.
  const isEvery = address === '0.0.0.0' || address === '::';
  return {
    address,
    port,
    url: url ?? `http://${isEvery ? hostname() : inUrl(address)}:${port}`,
  };
}
