import { createPrivateKey, X509Certificate } from 'node:crypto';
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

const certificate = pem('a certificate as PEM', (text) => new X509Certificate(text));
const privateKey = pem('a private key as PEM, without a password', createPrivateKey);

function pem(what: string, parse: (text: string) => unknown) {
  return textAs(what, (text) => {
    try {
      parse(text);
      return text;
    } catch {
      return undefined; // in another format
    }
  });
}

export const hostSettings = area(
  'Docker hosts',
  () => ({
    workerRoles: variable(
      'WORKER_ROLES',
      workerRoles.prefault(WORKER_ROLES.join()),
      'roles of a worker: `workflows` runs workflows and starts due work, without Docker; `host` operates the Docker host on its machine',
    ),
    listen: variable(
      'HOST_LISTEN',
      listenAddress.optional(),
      'listen address of a worker for API processes on other machines, which use it for the chat, logs, statistics and files of the agents of its host',
      { whenUnset: 'the worker does not listen' },
    ),
    url: variable(
      'HOST_URL',
      switchedAddress('http', 'https').optional(),
      'address at which API processes on other machines reach the worker',
      {
        whenUnset: 'from `HOST_LISTEN`',
      },
    ),
    certificate: variable(
      'HOST_TLS_CERT',
      certificate.optional(),
      'TLS certificate of the listener at `HOST_LISTEN`, for the name in `HOST_URL`; usually set as `HOST_TLS_CERT_FILE`',
      { whenUnset: 'no TLS, for example behind a proxy that terminates TLS' },
    ),
    key: variable('HOST_TLS_KEY', privateKey.optional(), 'key of `HOST_TLS_CERT`', {
      secret: true,
    }),
    ca: variable(
      'HOST_TLS_CA',
      certificate.optional(),
      'CA certificate that API processes trust for the workers of hosts',
      { whenUnset: "Node's usual ones" },
    ),
    tls: variable(
      'HOST_TLS',
      boolean.prefault('true'),
      '`false`: in production `HOST_URL` may be an `http` address on another machine; only for a network that no one else can reach',
    ),
  }),
  ({ ca, certificate: cert, key, listen, url, workerRoles: roles }) => ({
    workerRoles: roles,
    ca,
    listener: listen === undefined ? undefined : listenerOf(listen, url, tlsOf(cert, key)),
  }),
  (values, mode) => {
    const { certificate: cert, key, listen, tls, url } = values;
    if ((cert === undefined) !== (key === undefined)) {
      return ['HOST_TLS_CERT and HOST_TLS_KEY must be set together'];
    }
    const served = tlsOf(cert, key);
    if (served && !new X509Certificate(served.cert).checkPrivateKey(createPrivateKey(served.key))) {
      return ['HOST_TLS_KEY must be the key of HOST_TLS_CERT'];
    }
    if (served && url?.startsWith('http:')) {
      return ['HOST_URL must start with https://, because HOST_TLS_CERT makes the worker use TLS'];
    }
    if (listen === undefined || !tls || !mode.production) return [];
    const fault = plainFault(listenerOf(listen, url, served).url, mode);
    return fault === undefined
      ? []
      : [`HOST_URL ${fault}; or set HOST_TLS=false where nobody else reaches the worker`];
  },
);

/** A certificate and its key, as PEM. */
export interface HostTls {
  readonly cert: string;
  readonly key: string;
}

const tlsOf = (cert: string | undefined, key: string | undefined): HostTls | undefined =>
  cert === undefined || key === undefined ? undefined : { cert, key };

function listenerOf(listen: string, url: string | undefined, tls: HostTls | undefined) {
  const { address, port } = splitListenAddress(listen);
  // A wildcard address cannot be called: other machines use this machine's host name.
  const isEvery = address === '0.0.0.0' || address === '::';
  return {
    address,
    port,
    tls,
    url: url ?? `${tls ? 'https' : 'http'}://${isEvery ? hostname() : inUrl(address)}:${port}`,
  };
}
