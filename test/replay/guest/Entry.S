# The way from the processor's reset to 64-bit code, without a BIOS. This file is the ROM: 64 KiB at
# 0xffff0000 and at 0xf0000. It holds the program (Replay.cpp, linked for 1 MiB), copies it there and
# enters it in long mode with the first GiB mapped one to one.

.set PROGRAM, 0x100000
.set STACK, 0x800000           # grows down; the program's own memory ends below
.set TABLES, 0x10000           # page tables: top, directory pointers, directory

.section .rom, "ax"
.code16
start16:
  cli
  lgdtl %cs:(gdtr - start16)
  movl %cr0, %eax
  orb $1, %al
  movl %eax, %cr0
  ljmpl $8, $start32

.code32
start32:
  movw $16, %ax
  movw %ax, %ds
  movw %ax, %es
  movw %ax, %ss
  movl $program, %esi
  movl $PROGRAM, %edi
  movl $(program_end - program), %ecx
  cld
  rep movsb

  # Two-MiB pages for the first GiB.
  movl $TABLES, %edi
  xorl %eax, %eax
  movl $(3 * 1024), %ecx
  rep stosl
  movl $(TABLES + 0x1003), TABLES
  movl $(TABLES + 0x2003), TABLES + 0x1000
  movl $(TABLES + 0x2000), %edi
  movl $0x83, %eax
1:
  movl %eax, (%edi)
  addl $8, %edi
  addl $0x200000, %eax
  cmpl $0x40000000, %eax
  jb 1b

  # PAE, and the states of SSE (FXSR, exceptions) and XSAVE; long mode; paging.
  movl $(1 << 5 | 1 << 9 | 1 << 10 | 1 << 18), %eax
  movl %eax, %cr4
  movl $TABLES, %eax
  movl %eax, %cr3
  movl $0xc0000080, %ecx
  rdmsr
  orl $0x100, %eax
  wrmsr
  movl $0x80010023, %eax       # paging, write protection, numeric errors, monitor; no emulation
  movl %eax, %cr0
  ljmpl $24, $start64

.code64
start64:
  movl $STACK, %esp
  xorl %ebp, %ebp
  movl $PROGRAM, %eax
  call *%rax
2:
  hlt
  jmp 2b

.balign 8
gdt:
  .quad 0
  .quad 0x00cf9b000000ffff     # 8: 32-bit code
  .quad 0x00cf93000000ffff     # 16: data
  .quad 0x00af9b000000ffff     # 24: 64-bit code
gdtr:
  .word gdtr - gdt - 1
  .long gdt

program:
  .incbin "program.bin"
program_end:

.section .reset, "ax"
.code16
  .byte 0xe9                   # jmp to offset 0, start16, from offset 0xfff3
  .word 0x10000 - 0xfff3
