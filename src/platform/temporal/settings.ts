import { address } from '../environment/address.js';
import { area, variable, type SettingsOf, type VariableOptions } from '../environment/area.js';
import { NO_PRIVATE_HOSTS } from '../environment/private-hosts.js';
import { listenAddress, splitListenAddress, text } from '../environment/types.js';

/** Variables that Temporal's own tools understand: `@temporalio/envconfig` builds the connection from them. */
const CONNECTION = [
  connecting(
    'TEMPORAL_ADDRESS',
    'host and port of the frontend of Temporal; `npm start` runs a server of its own',
    { whenUnset: '`localhost:7233`' },
  ),
  connecting('TEMPORAL_NAMESPACE', 'namespace of the workflows', { whenUnset: '`default`' }),
  connecting('TEMPORAL_API_KEY', 'API key for Temporal', { secret: true }),
  connecting('TEMPORAL_TLS', '`true`: the connection uses TLS', {
    whenUnset: 'with an API key or a certificate',
  }),
  connecting('TEMPORAL_TLS_SERVER_NAME', 'name expected in the certificate of the server', {
    whenUnset: 'from the address',
  }),
  connecting('TEMPORAL_TLS_SERVER_CA_CERT_PATH', 'file with the CA certificate of the server'),
  connecting('TEMPORAL_TLS_SERVER_CA_CERT_DATA', 'the CA certificate of the server as PEM'),
  connecting('TEMPORAL_TLS_CLIENT_CERT_PATH', 'file with the client certificate'),
  connecting('TEMPORAL_TLS_CLIENT_CERT_DATA', 'the client certificate as PEM'),
  connecting('TEMPORAL_TLS_CLIENT_KEY_PATH', 'file with the key of the client certificate'),
  connecting('TEMPORAL_TLS_CLIENT_KEY_DATA', 'the key of the client certificate as PEM', {
    secret: true,
  }),
  connecting('TEMPORAL_TLS_DISABLE_HOST_VERIFICATION', "`true`: the server's name is not checked"),
  connecting('TEMPORAL_CONFIG_FILE', 'file with connection profiles, in TOML', {
    whenUnset: "the Temporal CLI's",
  }),
  connecting('TEMPORAL_PROFILE', 'name of the profile to use', { whenUnset: '`default`' }),
];

export const temporalSettings = area(
  'Temporal',
  (mode) => ({
    connection: Object.fromEntries(CONNECTION.map((each) => [each.name, each])),
    uiUrl: variable(
      'TEMPORAL_UI_URL',
      address(mode, 'http', 'https').optional(),
      'address of the Temporal UI, for links to workflow runs',
    ),
    workerMetrics: variable(
      'WORKER_METRICS_LISTEN',
      listenAddress.prefault('127.0.0.1:9465'),
      'listen address of `/metrics`, `/livez` and `/readyz` of a worker, for operators',
    ),
    paymentsMetrics: variable(
      'PAYMENTS_METRICS_LISTEN',
      listenAddress.prefault('127.0.0.1:9467'),
      'listen address of `/metrics`, `/livez` and `/readyz` of the payments process, for operators',
    ),
  }),
  ({ connection, paymentsMetrics, workerMetrics, ...values }) => ({
    ...values,
    paymentsMetrics: splitListenAddress(paymentsMetrics),
    workerMetrics: splitListenAddress(workerMetrics),
    /** The variables that are set, by name. */
    connection: Object.fromEntries(
      Object.entries(connection).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, value]],
      ),
    ),
  }),
  ({ connection }, { privateHosts, production }) =>
    production && isSilentlyPlain(connection, privateHosts)
      ? [
          'TEMPORAL_ADDRESS leaves this machine in production: set TEMPORAL_API_KEY, a client ' +
            'certificate or TEMPORAL_TLS=true, or where nobody else reaches it TEMPORAL_TLS=false, or ' +
            'PRIVATE_HOSTS with its host',
        ]
      : [],
);

/** Variables that set the authentication, or disable it explicitly. */
const PROOFS = [
  'TEMPORAL_API_KEY',
  'TEMPORAL_TLS',
  'TEMPORAL_TLS_CLIENT_CERT_PATH',
  'TEMPORAL_TLS_CLIENT_CERT_DATA',
  // Profiles contain their own authentication.
  'TEMPORAL_CONFIG_FILE',
  'TEMPORAL_PROFILE',
];

function isSilentlyPlain(
  connection: Readonly<Record<string, string | undefined>>,
  privateHosts = NO_PRIVATE_HOSTS,
): boolean {
  const { TEMPORAL_ADDRESS: address = 'localhost' } = connection;
  return !privateHosts.has(address) && PROOFS.every((name) => connection[name] === undefined);
}

export type TemporalSettings = SettingsOf<typeof temporalSettings>;

function connecting(name: string, meaning: string, options?: VariableOptions) {
  return variable(name, text.optional(), meaning, options);
}
