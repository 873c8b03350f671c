// Reads a page as that page tells it to: `letters N` is answered with so many, anything else not at all.
process.on('message', ({ page }) => {
  const [what, count] = Buffer.from(page.bytes).toString().split(' ');
  if (what === 'letters') process.send({ value: 'x'.repeat(Number(count)) });
});
