import { hostname } from 'node:os';
import { plainFault, switchedAddress } from '../../platform/environment/address.js';
import { area, variable } from '../../platform/environment/area.js';
import { inUrl } from '../../platform/http/own-hosts.js';
import { boolean, listenAddress, splitListenAddress } from '../../platform/environment/types.js';

export const hostSettings = area(
  'Docker hosts',
  () => ({
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
  ({ listen, url }) => ({ listener: listen === undefined ? undefined : listenerOf(listen, url) }),
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
