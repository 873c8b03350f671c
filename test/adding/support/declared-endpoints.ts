import { backendEndpoints } from '../../../api/backend/backend.js';
import type { Endpoint } from '../../../api/http/endpoint.js';
import { webEndpoints } from '../../../api/web/web.js';
import { NO_DATABASE } from '../../api/http/support.js';
import { databaseAlone } from '../../support/dependencies.js';

const nameOf = ({ method, path }: Endpoint) => `${method} ${path}`;

/** Returns the endpoints of both listeners, as `GET /api/agents`. */
export async function declaredEndpoints() {
  const url = 'postgres://nobody@127.0.0.1:1/nothing';
  const { close, dependencies } = await databaseAlone({ db: NO_DATABASE, url });
  try {
    return {
      WEB: webEndpoints(dependencies).map(nameOf),
      BACKEND: backendEndpoints(dependencies).map(nameOf),
    };
  } finally {
    await close();
  }
}
