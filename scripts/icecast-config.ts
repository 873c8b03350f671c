// Prints the configuration for an Icecast of the operator's own: npm run --silent icecast:config > icecast.xml
import { httpSettings } from '../src/platform/http/settings.js';
import { readAreas } from '../src/platform/environment/read.js';
import { icecastConfig } from '../src/radio/icecast-config.js';
import { radioSettings, requireIcecast } from '../src/radio/settings.js';
import { runScript } from '../src/run-script.js';
import { ServiceError } from '../src/lib/errors.js';

/** The usual port of Icecast. */
const USUAL_PORT = 8000;

await runScript(main, ServiceError);

function main(): Promise<void> {
  const areas = { http: httpSettings, radio: radioSettings };
  // The backend's key is not in the configuration.
  const { http, radio } = readAreas(areas, { INTERNAL_API_KEY: 'x'.repeat(32), ...process.env });
  const { adminPassword, authSecret, url } = requireIcecast(radio);
  const { hostname, port } = new URL(url);
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
  const config = icecastConfig({
    listen: { address: isLocal ? '127.0.0.1' : '0.0.0.0', port: Number(port) || USUAL_PORT },
    backendUrl: http.backendUrl,
    adminPassword,
    authSecret,
  });
  process.stdout.write(config);
  return Promise.resolve();
}
