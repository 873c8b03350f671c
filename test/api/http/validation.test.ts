import { expect, test } from 'vitest';
import * as z from 'zod';
import { validator } from '../../../api/http/validation.js';
import { cloneBody } from '../../../api/views/clones.js';
import { chainAddress } from '../../../api/views/chain-address.js';
import { splitParts } from '../../../api/views/splits.js';
import { BadRequestError } from '../../../src/lib/errors.js';

const ADDRESS = `0x${'1'.repeat(40)}`;

const refusalOf = (schema: z.ZodType, body: unknown) => () => validator(schema, 'body')(body);

const clone = (change: object) => ({
  parentAgentId: 'a1',
  name: 'second',
  paymentProof: {
    transactionHash: `0x${'2'.repeat(64)}`,
    amount: '1.0',
    currency: 'pathUSD',
    chainId: 4217,
    from: ADDRESS,
    to: ADDRESS,
    timestamp: 1_790_000_000,
    ...change,
  },
});

test.each([
  [{ transactionHash: '0x2' }, 'paymentProof.transactionHash must be 0x and 64 hex digits'],
  [
    { amount: '0.9999999' },
    'paymentProof.amount must be digits with at most one point and 6 decimals',
  ],
  [{ amount: '0.5' }, 'paymentProof.amount must be at least 1.000000'],
  [{ from: 'ada' }, 'paymentProof.from must be 0x and 40 hex digits'],
  [{ to: 'ada' }, 'paymentProof.to must be 0x and 40 hex digits'],
  [{ signature: 'ada' }, 'paymentProof.signature must be hex'],
])('names the invalid field of a clone paid by %j', (change, error) => {
  expect(refusalOf(cloneBody, clone(change))).toThrow(new BadRequestError(error));
});

test.each([
  [{ fromAddress: 'ada' }, 'fromAddress must be 0x and 40 hex digits'],
  [{ totalAmount: '-1' }, 'totalAmount must be digits with at most one point'],
  [
    { recipients: [{ address: 'ada', share: 100 }] },
    'recipients[0].address must be 0x and 40 hex digits',
  ],
  [
    { recipients: [{ address: `0x${'0'.repeat(40)}`, share: 100 }] },
    'recipients[0].address is an address without an owner',
  ],
])('names the invalid field of a split with %j', (change, error) => {
  const split = z.object({ fromAddress: chainAddress, ...splitParts });
  const recipients = [{ address: ADDRESS, share: 100 }];
  const body = { fromAddress: ADDRESS, totalAmount: '1', recipients, ...change };
  expect(refusalOf(split, body)).toThrow(new BadRequestError(error));
});

test('rejects a single-valued query parameter that is given twice', () => {
  const query = validator(z.object({ limit: z.string().optional() }), 'query');
  expect(() => query({ limit: ['1', '2'] })).toThrow(
    new BadRequestError('limit must be given once'),
  );
});
