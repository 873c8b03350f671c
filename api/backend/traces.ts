import { getTrace } from '../../src/fleet/traces.js';
import { reply } from '../http/reply.js';
import { presentHistory } from '../views/fleet.js';
import { readTrace } from './contract.js';
import type { BackendDependencies } from './dependencies.js';

/** Creates `GET /api/traces/:id`, by which the web API shows the steps of a trace. */
export function traceEndpoints({ traceHistories }: Pick<BackendDependencies, 'traceHistories'>) {
  return [
    readTrace.handledBy(async ({ params, tenant }) => {
      const trace = await getTrace(tenant, params.id);
      return reply(200, presentHistory(await traceHistories.read(trace)));
    }),
  ];
}
