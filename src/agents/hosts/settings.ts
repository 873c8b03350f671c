import { hostname } from 'node:os';
import { area, variable } from '../../platform/environment/area.js';
import { listenAddress, url } from '../../platform/environment/types.js';

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
      url('http', 'https').optional(),
      'address at which those processes reach the worker',
      {
        whenUnset: 'from `HOST_LISTEN`',
      },
    ),
  }),
  ({ listen, url }) => {
    if (listen === undefined) return { listener: undefined };
    const at = listen.lastIndexOf(':');
    const address = listen.slice(0, at).replace(/^\[|\]$/g, '');
    const port = Number(listen.slice(at + 1));
    // A wildcard address cannot be called: other machines use this machine's host name.
    const isEvery = address === '0.0.0.0' || address === '::';
    return {
      listener: {
        address,
        port,
        url: url ?? `http://${isEvery ? hostname() : listen.slice(0, at)}:${port}`,
      },
    };
  },
);
