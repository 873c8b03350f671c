import { expect, test } from 'vitest';
import { decodeText } from '../../src/pages/decode-text.js';

const html = 'text/html';
const latin = (text: string) => Buffer.from(text, 'latin1');

/** Returns the case of a page with two bytes, `ü` in UTF-8, after a head. */
const declared = (how: string, head: string, text: string) =>
  [[how, Buffer.from(`${head}ü`), html, head + text]] as const;

test.each([
  ['as its header says', Buffer.from('ü'), 'text/html; charset=UTF-8', 'ü'],
  ['as its header says, quoted', Buffer.from('ü'), 'text/html; charset="utf-8"', 'ü'],
  ['latin-1 as windows-1252', Buffer.from([0x80, 0xfc]), 'text/html; charset=ISO-8859-1', '€ü'],
  ['by its mark before its header', Buffer.from('\ufeffü'), 'text/html; charset=windows-1251', 'ü'],
  ['UTF-16 by its mark', Buffer.from('\ufeffü', 'utf16le'), html, 'ü'],
  [
    'by its header before its meta',
    latin('<meta charset=utf-8>é'),
    'text/html;charset=latin1',
    '<meta charset=utf-8>é',
  ],
  [
    'by its meta',
    Buffer.concat([latin('<meta charset="Shift_JIS">'), Buffer.from([0x93, 0xfa])]),
    html,
    '<meta charset="Shift_JIS">日',
  ],
  [
    'by its old meta',
    Buffer.concat([
      latin('<META http-equiv=Content-Type content="text/html; charset=gb2312">'),
      Buffer.from([0xd6, 0xd0]),
    ]),
    html,
    '<META http-equiv=Content-Type content="text/html; charset=gb2312">中',
  ],
  [
    'not by a meta in a comment',
    Buffer.from('<!--<meta charset=gb2312>-->ü'),
    html,
    '<!--<meta charset=gb2312>-->ü',
  ],
  [
    'as UTF-8 where its meta says UTF-16',
    Buffer.from('<meta charset=utf-16>ü'),
    html,
    '<meta charset=utf-16>ü',
  ],
  ['as UTF-8 where nothing is said', Buffer.from('ü'), undefined, 'ü'],
  ['as UTF-8 where nobody knows what is said', Buffer.from('ü'), 'text/html; charset=klingon', 'ü'],
  ['as windows-1252 where it cannot be UTF-8', latin('ü'), html, 'ü'],
  ...declared('not by a description', '<meta name=description content="charset=gb2312">', 'ü'),
  ...declared('not by a refresh', '<meta http-equiv=refresh content="1; /?charset=gb2312">', 'ü'),
  ...declared('not by an attribute', '<p title="<meta charset=gb2312>">', 'ü'),
  ...declared('not by a script', '<script>"<meta charset=gb2312>"</script>', 'ü'),
  ...declared('not by an unclosed script', '<script>"<meta charset=gb2312>"', 'ü'),
  ...declared('not by a title', '<title><meta charset=gb2312></title>', 'ü'),
  ...declared('not by an unknown name', '<meta charset=klingon>', 'ü'),
  ...declared('by the next meta', '<meta charset=klingon><meta charset=gb2312>', '眉'),
  ...declared('after a short comment', '<!--><meta charset=gb2312>-->', '眉'),
  ...declared('after a comment that ends with a bang', '<!-- --!><meta charset=gb2312>-->', '眉'),
  ...declared('by a meta with more', '<meta data-x="a>b" charset = \'gb2312\' />', '眉'),
  ...declared('by a late meta', `<script>${';'.repeat(9_000)}</script><meta charset=gb2312>`, '眉'),
  ...declared('by its XML declaration', '<?xml version="1.0" encoding=\'gb2312\'?>', '眉'),
  ...declared('by its meta before XML', '<?xml encoding="koi8-r"?><meta charset=gb2312>', '眉'),
  ['UTF-16 by its XML declaration', Buffer.from('<?ü', 'utf16le'), html, '<?ü'],
  ['UTF-16 in the other order', Buffer.from('<?ü', 'utf16le').swap16(), html, '<?ü'],
] as const)('decodes a page %s', (_how, bytes, contentType, text) => {
  expect(decodeText(bytes, contentType)).toBe(text);
});
