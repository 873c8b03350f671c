import { hostname } from 'node:os';
import { area, variable, type SettingsOf } from '../../platform/environment/area.js';
import { listenAddress, url } from '../../platform/environment/types.js';

export const hostSettings = area(
  'Docker hosts',
  () => ({
    listen: variable(
      'HOST_LISTEN',
      listenAddress.optional(),
      'where a worker serves chat, logs, statistics and files of its host to API processes elsewhere',
      { otherwise: 'not at all' },
    ),
    url: variable('HOST_URL', url('http', 'https').optional(), 'where those processes reach it', {
      otherwise: 'from `HOST_LISTEN`',
    }),
  }),
  ({ listen, url }) => {
    if (listen === undefined) return { listener: undefined };
    const at = listen.lastIndexOf(':');
    const address = listen.slice(0, at).replace(/^\[|\]$/g, '');
    const port = Number(listen.slice(at + 1));
    // Every address cannot be called: others know this machine by its name.
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

export type HostSettings = SettingsOf<typeof hostSettings>;
