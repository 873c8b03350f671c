import type { ServerResponse } from 'node:http';
import { GatewayAnswer } from './gateway-answer.js';

/** An answer to a request. */
export class PassedAnswer extends GatewayAnswer<ServerResponse> {
  protected override begin(
    response: ServerResponse,
    status: number,
    headers: string[],
    message: string | undefined,
  ): void {
    response.writeHead(status, message, headers);
  }
}
